"""The base of the three stages' spiders: tasks become pages, pages become items, subtasks and further pages."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.http import Response

from threadmill.crawl.absence import Absence
from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.extraction import Extractor
from threadmill.crawl.reference import PageReference
from threadmill.crawl.settler import MARGIN, WHEN
from threadmill.model.errors import ConfigError, ExtractionError, SourceError, TaskError
from threadmill.model.keys import Lane
from threadmill.model.source import Source
from threadmill.model.stages import Stage
from threadmill.model.task import Task
from threadmill.store.filters import fingerprint
from threadmill.store.work import Met, When

REFERENCE = "threadmill.reference"
"""Meta key of a stage's request: its `PageReference`."""


class StageSpider(Spider):
    """A stage's spider. A subclass names its stage and says what a page of it gives (`collect`)."""

    stage: ClassVar[Stage]
    keys_are_posts: ClassVar[bool] = False
    """Whether its tasks' keys are post ids: then a key that is gone is a post that is gone."""

    def __init__(
        self,
        *args: Any,
        sources: Iterable[Source] = (),
        partitions: int = 1,
        namespace: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sources = {source.name: source for source in sources}
        if not self.sources:
            raise ConfigError("a stage needs at least one source: set THREADMILL_SOURCES")
        self.extractors = {name: Extractor(source, self.stage.name) for name, source in self.sources.items()}
        for source in self.sources.values():
            _check_handdowns(source, self.stage)
        self._headers = {name: dict(source.headers) for name, source in self.sources.items()}
        for name, source in self.sources.items():
            if source.user_agent:
                self._headers[name]["User-Agent"] = source.user_agent
        self._lanes = [
            (Lane(name, partition, namespace), source.rate / partitions if source.rate else None)
            for name, source in self.sources.items()
            for partition in range(partitions)
        ]

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        """What a page gives: items (dicts), subtasks (`Task`) and further pages (`Request`)."""
        raise NotImplementedError

    def parse(self, response: Response, **kwargs: Any) -> Iterable[Any]:
        reference: PageReference = response.meta[REFERENCE]
        if not isinstance(response.body, bytes) or not response.body:
            raise ExtractionError(f"{response.url} answered with an empty body")
        extract = self.extractors[reference.source].extract(
            response.body,
            url=response.url,
            encoding=getattr(response, "_declared_encoding", lambda: None)(),
            key=reference.key,
            page=reference.number,
            params=reference.params,
        )
        return self.collect(CollectedPage(reference, extract, self))

    def request(self, reference: PageReference, when: When = When.ALWAYS, margin: int = 0) -> Request:
        """The request for a page; raises `TaskError` if its key or parameters may not stand in a URL."""
        url = self.extractors[reference.source].url(reference.key, reference.number, reference.params)
        meta: dict[str, Any] = {REFERENCE: reference}
        if when is not When.ALWAYS:
            meta[WHEN] = when
        if margin:
            meta[MARGIN] = margin
        if not self.sources[reference.source].obey_robots:
            meta["dont_obey_robotstxt"] = True
        return Request(
            url,
            callback=self.parse,
            headers=self._headers[reference.source] or None,
            meta=meta,
            priority=reference.priority,
        )

    def beginning_if_short(self, reference: PageReference, rows: int) -> Request | None:
        """The first page, for a resumed run that ends at `reference` with `rows` rows and has passed over some.

        What it read before it is not read again: those pages are known to the run.
        """
        rules = self.extractors[reference.source].rules
        first = rules.paging.first_page
        if rules.resume is None or not rules.resume.falls_short(reference.number - first, rows, reference.expected):
            return None
        self.logger.info(
            "%s of %s has other pages than stages.%s.resume.per_page says, or is gone: its first page is asked",
            reference.key,
            reference.source,
            self.stage.name,
        )
        return self.request(reference.resumed(first, expected=0))

    def met(self, reference: PageReference, *, last: bool) -> Met:
        """What becomes of the posts that a page of a board lists; `last`: no page follows it."""
        rules = self.extractors[reference.source].rules
        if not rules.notice_deletions:
            return Met.NO
        cut_short = last and rules.paging.is_last_allowed(reference.number)
        return Met.COMPARE if reference.full and not cut_short else Met.REMEMBER

    # What the worker asks of a spider --------------------------------------------------------------------------------

    def lanes(self) -> list[tuple[Lane, float | None]]:
        """The lanes this stage serves, each with its share of the site's rate (requests/s)."""
        return self._lanes

    def requests_for(self, task: Task) -> Iterable[Request]:
        """The root request of a task: its first page, or the one where the news of a known key begins."""
        if task.source not in self.sources:
            raise TaskError("unknown-source", f"source {task.source!r} is not served here; set THREADMILL_SOURCES")
        rules = self.extractors[task.source].rules
        begin = PageReference.of(task, rules.paging.first_page)
        known = rules.resume.pages_known(task.known, task.version) if rules.resume and not task.force else 0
        if rules.resume and known:
            resumed = begin.resumed(begin.number + known, expected=rules.resume.rows(task.version))
            with suppress(TaskError):  # none of the urls may fit: not every address leads to later pages
                return [self.request(resumed)]
        return [self.request(begin)]

    def absence(self, request: Request) -> Absence:
        """What a 404 or 410 for a page means. Only a missing first page says that what the key names is gone."""
        this: PageReference = request.meta[REFERENCE]
        paging = self.extractors[this.source].rules.paging
        if (beginning := self.beginning_if_short(this, rows=0)) is not None:
            return Absence(instead=beginning)
        if this.number != paging.first_page:
            return Absence(met=self.met(this, last=True))
        if paging.ends_by_absence:
            return Absence()
        items = [{"type": "gone", "source": this.source, "post_id": this.key}] if self.keys_are_posts else ()
        return Absence(gone=True, items=items)

    def allows(self, request: Request) -> bool:
        """Whether a request is for its source's hosts, redirects included; a robots.txt may be any source's."""
        reference: PageReference | None = request.meta.get(REFERENCE)
        sources = self.sources.values() if reference is None else [self.sources[reference.source]]
        return any(source.allows(request.url) for source in sources)

    def encode_request(self, request: Request) -> bytes:
        reference: PageReference = request.meta[REFERENCE]
        return reference.dump()

    def decode_request(self, data: bytes, source: str) -> Request:
        return self.request(PageReference.load(data, source))

    def key_of(self, request: Request) -> str:
        """The key of the task a page belongs to."""
        reference: PageReference = request.meta[REFERENCE]
        return reference.key

    def fingerprint(self, request: Request) -> str:
        """A page of a key is the same page however its URL is written."""
        reference: PageReference = request.meta[REFERENCE]
        return fingerprint(f"{reference.key}\n{reference.number}")


def _check_handdowns(source: Source, stage: Stage) -> None:
    for submit in source.rules(stage.name).submit:
        if submit.stage not in stage.hands_to:
            allowed = ", ".join(stage.hands_to) or "nobody"
            raise SourceError(
                f"source {source.name}: {stage.name} hands down to {allowed}, not to {submit.stage} (model/stages.py)"
            )
