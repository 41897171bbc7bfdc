"""The comment collector: collects comment trees, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.spider import StageSpider
from threadmill.model.stages import COMMENT


class CommentCollector(StageSpider):
    """Tasks are post ids; each page gives comments and leads to the next. Where the source says how, a post that was
    collected before is begun at the page of its last known comment."""

    name = "comment_collector"
    stage = COMMENT
    keys_are_posts = True

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items
        yield from page.subtasks()
        yield from page.next_page()
