"""The list scanner: scans boards, newest posts first, and hands the posts down that are new or have moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadmill.crawl.spider import CollectedPage, StageSpider
from threadmill.model.stages import LIST

MARGIN = 1
"""Pages in a row without news before a scan stops: pinned and bumped posts may fill one."""


class ListScanner(StageSpider):
    """Tasks are forum ids; a scan goes from page to page, to the source's limit or until it meets only known posts."""

    name = "list_scanner"
    stage = LIST

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items
        yield from page.subtasks()
        if self.sources[page.reference.source].rules(self.stage.name).stop == "known":
            yield from page.next_page_unless_known(MARGIN)
        else:
            yield from page.next_page()
