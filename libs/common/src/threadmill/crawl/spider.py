"""The base of the three stages' spiders: tasks become pages, pages become items, subtasks and further pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.http import Response

from threadmill.crawl.extraction import Extract, Extractor
from threadmill.crawl.reference import PageReference
from threadmill.crawl.settler import WHEN
from threadmill.model.errors import ConfigError, ExtractionError, SourceError, TaskError
from threadmill.model.keys import Lane
from threadmill.model.source import Source
from threadmill.model.stages import STAGES, Stage
from threadmill.model.task import Task
from threadmill.store.filters import fingerprint
from threadmill.store.work import When

REFERENCE = "threadmill.reference"
"""Meta key of a stage's request: its `PageReference`."""


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
        """The page after this one, if there is one."""
        if self.extract.next_page is not None:
            yield self.spider.request(self.reference.following(self.extract.next_page, self.extract.params))

    def next_page_unless_known(self, margin: int) -> Iterator[Request]:
        """The next page if this one brought something new, or if fewer than `margin` in a row brought nothing.

        Whether it did is decided by the commit, where the truth is. The margin is for pinned and bumped posts.
        """
        if self.extract.next_page is None:
            return
        fresh = self.reference.following(self.extract.next_page, self.extract.params)
        yield self.spider.request(fresh, When.SOMETHING_NEW)
        if self.reference.stale < margin:
            stale = self.reference.following(
                self.extract.next_page, self.extract.params, stale=self.reference.stale + 1
            )
            yield self.spider.request(stale, When.NOTHING_NEW)


class StageSpider(Spider):
    """A stage's spider. A subclass names its stage and says what a page of it gives (`collect`)."""

    stage: ClassVar[Stage]

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

    def request(self, reference: PageReference, when: When = When.ALWAYS) -> Request:
        """The request for a page; raises `TaskError` if its key or parameters may not stand in a URL."""
        url = self.extractors[reference.source].url(reference.key, reference.number, reference.params)
        meta: dict[str, Any] = {REFERENCE: reference}
        if when is not When.ALWAYS:
            meta[WHEN] = when
        if not self.sources[reference.source].obey_robots:
            meta["dont_obey_robotstxt"] = True
        return Request(
            url,
            callback=self.parse,
            headers=self._headers[reference.source] or None,
            meta=meta,
            priority=reference.priority,
        )

    # What the worker asks of a spider --------------------------------------------------------------------------------

    def lanes(self) -> list[tuple[Lane, float | None]]:
        """The lanes this stage serves, each with its share of the site's rate (requests/s)."""
        return self._lanes

    def requests_for(self, task: Task) -> Iterable[Request]:
        """The root requests of a task: its first page."""
        if task.source not in self.sources:
            raise TaskError("unknown-source", f"source {task.source!r} is not served here; set THREADMILL_SOURCES")
        first = self.extractors[task.source].rules.paging.first_page
        yield self.request(PageReference.of(task, first))

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
