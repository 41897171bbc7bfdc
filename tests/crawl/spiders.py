"""A plain Scrapy spider with the add-on, and a pipeline: what users of any Scrapy project would write.

Run as a process: `python -m crawl.spiders '<json>'` with site, settings and what the callback shall do.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import CloseSpider, DropItem
from scrapy.http import Response

from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.model.task import Task

LANE = Lane("site")
STAGE = Stage("pages", service="")


class PageSpider(Spider):
    """Tasks are paths; each page is an item, and may lead to others."""

    name = "pages"
    stage = STAGE
    site: str
    does: str = "item"
    allowed_port: str = ""

    def lanes(self) -> list[tuple[Lane, float | None]]:
        return [(LANE, None)]

    def allows(self, request: Request) -> bool:
        return request.url.startswith(self.site)

    def requests_for(self, task: Task) -> Iterator[Request]:
        errback = {"errback": self.on_error, "async-errback": self.on_error_later}.get(self.does)
        yield Request(f"{self.site}/{task.key}", callback=self.parse, errback=errback)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"path": response.url.removeprefix(self.site), "extra": kwargs}
        if self.does == "raise":
            raise ValueError("the callback has a bug")
        if self.does == "block":
            time.sleep(1.0)
        if self.does == "copy-meta" and "child" not in response.url:
            # What callbacks do all the time: hand their meta on, or replace their own request.
            yield Request(f"{self.site}/page/child-1", callback=self.parse, meta=response.meta)
            yield Request(f"{self.site}/page/child-2?b=2&a=1", callback=self.parse, meta=dict(response.meta))
            yield Request(f"{self.site}/page/child-2?a=1&b=2", callback=self.parse)  # the same page
            yield response.request.replace(url=f"{self.site}/page/child-3", cb_kwargs={"note": "kept"})
        if self.does == "no-json":
            yield {"path": "no-json", "extra": object()}
        if self.does == "wrong-stage":
            yield Task("elsewhere", LANE.source, "1")
        if self.does == "lambda":
            yield Request(f"{self.site}/page/never", callback=lambda _: None)

    async def on_error_later(self, failure: Any) -> Any:
        for item in self.on_error(failure):
            yield item

    def on_error(self, failure: Any) -> Iterator[Any]:
        yield {"path": "errback", "extra": {"error": failure.value.response.status}}


class StartingSpider(PageSpider):
    """A plain spider with start URLs of its own."""

    name = "starting"

    async def start(self) -> Any:
        for number in range(20):
            yield Request(f"{self.site}/page/{number}", callback=self.parse)


class Pipeline:
    """Marks, drops or fails items, by their path."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if "enough" in item["path"]:
            raise CloseSpider("enough")
        if "drop" in item["path"]:
            raise DropItem("not wanted")
        if "fail" in item["path"]:
            raise RuntimeError("the pipeline has a bug")
        return item


def main(spider: type[PageSpider] = PageSpider) -> None:
    order = json.loads(sys.argv[1])
    logging.basicConfig(level="INFO")
    settings = {
        "ADDONS": {"threadmill.crawl.addon.Threadmill": 100},
        "REDIS_URL": os.environ["THREADMILL_REDIS_URL"],
        "LOG_LEVEL": "INFO",
        **order.get("settings", {}),
    }
    process = AsyncCrawlerProcess(settings)
    spider = StartingSpider if order.get("starting") else spider
    process.crawl(spider, site=order["site"], does=order.get("does", "item"))
    process.start()


if __name__ == "__main__":
    main()
