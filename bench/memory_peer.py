"""What scrapy-redis keeps in Redis, put there by its own code.

Its classes are given a pipeline as their server: they say what they always say, and it travels a thousand at a time.
They are imported where they are used: who only lists the benchmarks need not have them.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis
from scrapy import Request, Spider
from scrapy.http import Response

from bench.callbacks import Item, post_path
from bench.filling import FIRST_POST

_SITE = "http://127.0.0.1:8000"
_BATCH = 1000


class ForumSpider(Spider):
    """A spider whose requests can be written."""

    name = "forum"

    def parse(self, response: Response, **kwargs: Any) -> None:
        """Named in requests, never called."""


def start_urls(client: Redis, count: int) -> None:
    """The start list, with the JSON its README asks for; whoever submits pushes it himself."""
    with _pipelined(client) as (server, sent):
        for url in _urls(count):
            server.rpush("forum:start_urls", json.dumps({"url": url}))
            sent()


def requests(client: Redis, count: int) -> None:
    """Its default queue with its default serializer."""
    from scrapy_redis.queue import PriorityQueue  # noqa: PLC0415

    spider = ForumSpider()
    with _pipelined(client) as (server, sent):
        queue = PriorityQueue(server, spider, "%(spider)s:requests")
        for url in _urls(count):
            queue.push(Request(url, callback=spider.parse, meta={"depth": 1}))
            sent()


def fingerprints(client: Redis, count: int) -> None:
    """Its only dupefilter."""
    from scrapy_redis.dupefilter import RFPDupeFilter  # noqa: PLC0415

    with _pipelined(client) as (server, sent):
        dupefilter = RFPDupeFilter(server, "forum:dupefilter")
        for url in _urls(count):
            dupefilter.request_seen(Request(url))
            sent()


def items_of(pages: Callable[[], Iterator[list[Item]]]) -> Callable[[Redis, int], None]:
    """A filling: items as its pipeline writes them."""
    from scrapy_redis.pipelines import RedisPipeline  # noqa: PLC0415

    def fill(client: Redis, count: int) -> None:
        spider = ForumSpider()
        with _pipelined(client) as (server, sent):
            pipeline = RedisPipeline(server)
            for item in itertools.islice(itertools.chain.from_iterable(pages()), count):
                pipeline._process_item(item, spider)
                sent()

    return fill


def _urls(count: int) -> Iterator[str]:
    return (_SITE + post_path(FIRST_POST + n) for n in range(count))


@contextmanager
def _pipelined(client: Redis) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A pipeline in the place of a server, and what sends it off when enough has been said."""
    with client.pipeline(transaction=False) as pipeline:

        def sent() -> None:
            if len(pipeline) >= _BATCH:
                pipeline.execute()

        yield pipeline, sent
        pipeline.execute()
