"""The comment collector: collects comment trees, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadmill.crawl.spider import CollectedPage, StageSpider
from threadmill.model.stages import COMMENT


class CommentCollector(StageSpider):
    """Tasks are post ids; each page gives comments and leads to the next."""

    name = "comment_collector"
    stage = COMMENT

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items
        yield from page.subtasks()
        yield from page.next_page()
