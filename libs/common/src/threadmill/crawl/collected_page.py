"""A collected page: what the source's rules found on it, as items, subtasks and further pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import Request

from threadmill.crawl.extraction import Extract
from threadmill.crawl.reference import PageReference
from threadmill.model.stages import STAGES
from threadmill.model.task import Task
from threadmill.store.work import Met, When

if TYPE_CHECKING:
    from threadmill.crawl.spider import StageSpider


@dataclass(frozen=True, slots=True)
class CollectedPage:
    """A downloaded page and what the source's rules found in it."""

    reference: PageReference
    extract: Extract
    spider: StageSpider

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.extract.items

    def subtasks(self) -> Iterator[Task]:
        """What this page hands down to other stages."""
        this = self.reference
        for handdown in self.extract.handdowns:
            yield Task(
                stage=handdown.stage,
                source=this.source,
                key=handdown.key,
                params=handdown.params,
                version=handdown.version,
                priority=this.priority,
                depth=this.depth + 1,
                parent=this.key,
                trace=this.trace,
                force=this.cascade,
                cascade=this.cascade and bool(STAGES[handdown.stage].hands_to),
            )

    def next_page(self) -> Iterator[Request]:
        """The page after this one, if there is one; at a resumed run's end the first page, if rows were passed over."""
        if self.extract.next_page is not None:
            yield self.spider.request(self.reference.following(self.extract.next_page, self.extract.params))
        elif (beginning := self.spider.beginning_if_short(self.reference, self.extract.rows)) is not None:
            yield beginning

    def next_page_unless_known(self, margin: int) -> Iterator[Request]:
        """The next page, unless a scan has come to posts that are known: `margin` of them in a row.

        Whether they are is decided by the commit, where the truth is. It takes one of the two: if this page brings
        something new, the posts at its end count; if it brings nothing, all of them and those just before this page.
        """
        number, params = self.extract.next_page, self.extract.params
        if number is None:
            return
        yield self.spider.request(self.reference.following(number, params), When.SOMETHING_NEW, margin)
        # A page that hands nothing down counts as one post, so that such pages come to an end, too.
        stale = self.reference.stale + max(len(self.extract.handdowns), 1)
        if stale < margin:
            yield self.spider.request(self.reference.following(number, params, stale=stale), When.NOTHING_NEW)

    def met(self) -> Iterator[Met]:
        """That the posts on this page stand on their board, if the source wants deletions to be noticed."""
        if (met := self.spider.met(self.reference, last=self.extract.next_page is None)) is not Met.NO:
            yield met
