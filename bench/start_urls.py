"""The start list of a scrapy-redis spider: how it is asked for pages."""

import json

from redis import Redis


def push(redis: Redis, name: str, *urls: str) -> None:
    """Asks the spider called `name` for these pages."""
    redis.rpush(f"{name}:start_urls", *(json.dumps({"url": url}) for url in urls))
