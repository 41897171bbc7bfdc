"""scrapy-redis over a whole forum: one process, one spider for list pages, posts and comments, as its README has it.

`python -m bench.peers.scrapy_redis_forum --redis-port PORT --name forum` runs until SIGTERM; what is pushed to the list
`<name>:start_urls` is collected.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy_redis.spiders import RedisSpider

from bench.callbacks import Item, Parsed, parse_comments, parse_post, post_path
from bench.peers.forum import SHARED_SETTINGS
from bench.peers.scrapy_redis import SETTINGS


class WholeForumSpider(RedisSpider):  # type: ignore[misc]  # scrapy-redis has no types
    """A start URL is a list page or a post; a list page leads to its posts and to the next list page."""

    name = "forum"

    def parse(self, response: Response, **_: Any) -> Iterator[Item | Request]:
        if "/BBS/list/" not in response.url:
            yield from self._output(response, parse_post(response.body))
            return
        listing = json.loads(response.body)
        for post in listing["posts"]:
            yield response.follow(post_path(post["post_id"]), callback=self.parse)
        if listing["page"] < listing["pages"]:
            yield response.follow(f"/BBS/list/{listing['forum_id']}/{listing['page'] + 1}", callback=self.parse)

    def parse_comments(self, response: Response) -> Iterator[Item | Request]:
        yield from self._output(response, parse_comments(response.body))

    def _output(self, response: Response, page: Parsed) -> Iterator[Item | Request]:
        yield from page.items
        if page.next_path:
            yield response.follow(page.next_path, callback=self.parse_comments)


def main() -> None:
    """The peer's process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis-port", type=int, required=True)
    parser.add_argument("--name", default=WholeForumSpider.name, help="of the spider, so of its keys")
    parser.add_argument("--concurrency", type=int, default=16, help="pages at a time")
    parser.add_argument("--queue", default="PriorityQueue", help="of scrapy_redis.queue")
    options = parser.parse_args()
    process = AsyncCrawlerProcess(
        {
            **SHARED_SETTINGS,
            **SETTINGS,
            "REDIS_URL": f"redis://127.0.0.1:{options.redis_port}/0",
            "CONCURRENT_REQUESTS": options.concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": options.concurrency,
            "SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{options.queue}",
            "LOG_LEVEL": "ERROR",
        }
    )
    process.crawl(WholeForumSpider, name=options.name)
    process.start()


if __name__ == "__main__":
    main()
