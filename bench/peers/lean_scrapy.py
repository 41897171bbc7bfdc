"""Plain Scrapy set up by hand to do as little as possible: in memory, nothing shared, one item a page.

What docs/decisions/0003 found worth it, spelled out here so that this side stays the same when Threadmill's
defaults change. The items of a page travel as one: that is not one item for each comment, and no pipeline
written for items could read it. The side shows what is left to gain within Scrapy, not what its users have.
"""

import sys
from collections.abc import Iterator
from typing import Any

from scrapy import Request

from bench.callbacks import Item, Parsed
from bench.peers.forum import crawl
from bench.peers.plain_scrapy import PlainSpider
from bench.run import Run

LEAN: dict[str, Any] = {
    "CONCURRENT_ITEMS": 1,
    "WARN_ON_GENERATOR_RETURN_VALUE": False,
    "COOKIES_ENABLED": False,
    "REFERER_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
}


class LeanSpider(PlainSpider):
    """The same callbacks, their items in one piece."""

    def _output(self, page: Parsed) -> Iterator[Item | Request]:
        batch: Item = {"items": page.items}
        for output in super()._output(page):
            if isinstance(output, Request):
                yield output
            elif batch:
                yield batch
                batch = {}


if __name__ == "__main__":
    crawl(LeanSpider, Run.from_json(sys.argv[1]), LEAN)
