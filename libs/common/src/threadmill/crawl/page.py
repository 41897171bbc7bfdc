"""A page: one leased request, from the lease to its settlement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from threadmill.model.task import EXPRESS_PRIORITY
from threadmill.store.work import Lease, PageCommit

if TYPE_CHECKING:
    from threadmill.crawl.lanes import LaneWork

Errback = Callable[[Failure], Any]

PAGE = "threadmill.page"
"""Meta key of a leased request (and of what redirects replace it with): its `Page`. Never copied to children."""
PARENT = "threadmill.parent"
"""Meta key of a page's child on its way to the scheduler: the `Page` that yielded it."""


class Page:
    """What a worker knows of one leased request. Exactly one of commit, delay, park and release ends it."""

    __slots__ = ("begun", "exhausted", "lane", "lease", "outstanding", "passes", "request", "settled", "since", "work")

    def __init__(self, lane: LaneWork, lease: Lease, since: float) -> None:
        self.lane = lane
        self.lease = lease
        self.since = since
        """When it was leased, on the event loop's clock (s)."""
        self.request: Request | None = None
        """The request that stands for it now: the leased one, or what a redirect made of it."""
        self.work = PageCommit(lease.id)
        self.outstanding = 0
        """Items that are still in the item pipelines."""
        self.passes = 0
        """Outputs being collected: a middleware that recovers from an exception makes a second one."""
        self.exhausted = False
        """Whether the callback's output has ended."""
        self.begun = False
        """Whether the engine has it; what waits in a buffer may be given back as it came."""
        self.settled = False

    @property
    def express(self) -> bool:
        """Whether an operator asked for it by hand."""
        return self.lease.record.priority >= EXPRESS_PRIORITY

    @classmethod
    def of(cls, request: Request | None) -> Page | None:
        """The page a request stands for, if it was leased."""
        return request.meta.get(PAGE) if request is not None else None


class GivenBack(IgnoreRequest):
    """A page's download was not begun: its lane is paused, or the page was settled meanwhile."""


class GuardedErrback:
    """A leased request's errback: settlement first, then the spider's own (`original`), if it has one."""

    def __init__(
        self, settle: Callable[[Failure, Errback | None], AsyncIterator[Any]], original: Errback | None
    ) -> None:
        self._settle = settle
        self.original = original
        self.__name__ = getattr(original, "__name__", "errback")

    def __call__(self, failure: Failure) -> AsyncIterator[Any]:
        return self._settle(failure, self.original)
