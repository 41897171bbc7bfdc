"""The callbacks of the Scrapy-based peers, and the settings they share."""

from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from bench.callbacks import Item, Parsed, parse_comments, parse_post
from bench.meter import Meter
from bench.run import Run

SHARED_SETTINGS: dict[str, Any] = {
    # Scrapy's default. The forum is one host, so its other default, 8 a host, would hold the peers back for
    # politeness' sake; no side should be slow because it was told to be.
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    # The default, DEBUG, prints every item, a tenth of plain Scrapy's time; INFO makes scrapy-redis print
    # every task.
    "LOG_LEVEL": "WARNING",
}


FOLLOW_UP = 1
"""The priority of a comment page: on every side a post is finished before others are begun. Posts are cheaper than
comment pages, so a side that took them first would be timed over less work a page."""


class ForumSpider(Spider):
    """Posts, then their comment pages one after the other; an item for each post and each comment."""

    name = "forum"
    run: Run
    meter: Meter

    def parse(self, response: Response, **_: Any) -> Iterator[Item | Request]:
        yield from self._output(parse_post(response.body))

    def parse_comments(self, response: Response) -> Iterator[Item | Request]:
        yield from self._output(parse_comments(response.body))

    def _output(self, page: Parsed) -> Iterator[Item | Request]:
        over = self.meter.page(len(page.items))
        yield from page.items
        if over:
            raise CloseSpider("measured")
        if page.next_path:
            yield Request(self.run.site_url + page.next_path, callback=self.parse_comments, priority=FOLLOW_UP)


def crawl(spider: type[ForumSpider], run: Run, settings: dict[str, Any]) -> None:
    """Runs `spider` in this process, as `scrapy crawl` would, and prints what was measured."""
    meter = Meter(run)
    process = AsyncCrawlerProcess({**SHARED_SETTINGS, **settings})
    process.crawl(spider, run=run, meter=meter)
    process.start()
    print(meter.report())
