"""The list scanner: scans boards, newest posts first, and hands the posts down that are new or have moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.spider import StageSpider
from threadmill.model.stages import LIST


class ListScanner(StageSpider):
    """Tasks are forum ids; a scan goes from page to page until it comes to known posts, or to the end if it is full."""

    name = "list_scanner"
    stage = LIST

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items
        yield from page.subtasks()
        yield from page.met()
        rules = self.sources[page.reference.source].rules(self.stage.name)
        if page.reference.full or rules.stop == "limit":
            yield from page.next_page()
        else:
            yield from page.next_page_unless_known(rules.margin)
