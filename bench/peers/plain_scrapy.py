"""Plain Scrapy with its default settings: in memory, nothing shared, items dropped after their signals.

That is generous to it: it stores nothing and loses everything when it dies. It is the measure for the other
sides.
"""

import sys
from collections.abc import AsyncIterator

from scrapy import Request

from bench.callbacks import post_path
from bench.peers.forum import ForumSpider, crawl
from bench.run import Run


class PlainSpider(ForumSpider):
    """Begins with a request for each post, as `start()` in Scrapy's tutorial does."""

    async def start(self) -> AsyncIterator[Request]:
        for post_id in self.run.post_ids():
            yield Request(self.run.site_url + post_path(post_id))


if __name__ == "__main__":
    crawl(PlainSpider, Run.from_json(sys.argv[1]), {})
