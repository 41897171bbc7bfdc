"""The detail collector: collects posts, and hands their comments down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.spider import StageSpider
from threadmill.model.stages import DETAIL


class DetailCollector(StageSpider):
    """Tasks are post ids; a post's page is a post, and a subtask for its comments if it has any."""

    name = "detail_collector"
    stage = DETAIL
    keys_are_posts = True

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items
        yield from page.subtasks()
        yield from page.next_page()
