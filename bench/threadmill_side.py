"""The threadmill side: the peers' own spider with the add-on, one worker, every guarantee on.

Tasks are post ids in the stage's task stream; items go to the item stream with each page's commit.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from typing import Any

from scrapy import Request

from bench.callbacks import Item, Parsed, post_path
from bench.peers.forum import ForumSpider, crawl
from bench.run import Run
from threadmill.model.config import Config
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.model.task import Task
from threadmill.store.calls import run as call
from threadmill.store.connection import connect
from threadmill.store.stage import StageStore

LANE = Lane("bench")
STAGE = Stage("forum", service="")
BATCH = 1000


class ThreadmillSpider(ForumSpider):
    """The same callbacks; a task is a post id."""

    stage = STAGE
    _over: "asyncio.Future[None] | None" = None

    def lanes(self) -> list[tuple[Lane, float | None]]:
        return [(LANE, None)]

    def _output(self, page: Parsed) -> Iterator[Item | Request]:
        """The peers' own, but for the end: a page whose callback raises is not committed, and all must be."""
        over = self.meter.page(len(page.items))
        yield from page.items
        if over:
            if not self._over:
                self._over = asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="measured"))
        elif page.next_path:
            yield Request(self.run.site_url + page.next_path, callback=self.parse_comments)

    def requests_for(self, task: Task) -> Iterator[Request]:
        yield Request(self.run.site_url + post_path(task.key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Run.from_json)
    parser.add_argument("--settings", type=json.loads, default={}, help="Scrapy settings of this run, as JSON")
    options = parser.parse_args()
    run: Run = options.run
    client = connect(run.near_redis_url)
    store = StageStore(LANE, STAGE)
    posts = run.post_ids()
    for at in range(0, len(posts), BATCH):
        tasks = [Task(STAGE.name, LANE.source, key) for key in posts[at : at + BATCH]]
        call(client, store.submit(tasks, token=f"bench{at}"))
    settings: dict[str, Any] = {
        "ADDONS": {"threadmill.crawl.addon.Threadmill": 100},
        "THREADMILL_CONFIG": Config(redis_url=run.redis_url),
        # The peers ask for no robots.txt either: one page more or less.
        "ROBOTSTXT_OBEY": False,
        **options.settings,
    }
    crawl(ThreadmillSpider, run, settings)


if __name__ == "__main__":
    main()
