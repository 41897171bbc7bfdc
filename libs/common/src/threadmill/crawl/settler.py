"""The settler: writes down what became of each page, for the next trip to Redis."""

from __future__ import annotations

import logging
from dataclasses import replace

import orjson
from scrapy import Request

from threadmill.crawl.exchange import Exchange
from threadmill.crawl.feed import Feed
from threadmill.crawl.hooks import SpiderHooks
from threadmill.crawl.lanes import LaneWork
from threadmill.crawl.outcomes import GONE_COUNTER, GiveUp, Retry, RetryPolicy, Settled
from threadmill.crawl.page import GuardedErrback, Page
from threadmill.model.errors import TaskError
from threadmill.model.task import EXPRESS_PRIORITY
from threadmill.store.work import Child, Delay, PageCommit, Park, When

logger = logging.getLogger(__name__)

SERVED = 20
"""So many pages done since a site last asked to wait show that it serves others."""
WHEN = "threadmill.when"
"""Meta key by which a callback makes a follow-up conditional: a `When`."""
MARGIN = "threadmill.margin"
"""Meta key for the margin of that condition: `Child.margin`."""


class Settler:
    """Ends pages: exactly one of commit, fail and release ends each, whatever comes later."""

    def __init__(
        self,
        exchange: Exchange,
        feed: Feed,
        hooks: SpiderHooks,
        policy: RetryPolicy,
        lanes: list[LaneWork],
        max_failures: int,
    ) -> None:
        self._exchange = exchange
        self._feed = feed
        self._hooks = hooks
        self._policy = policy
        self._lanes = lanes
        self._max_failures = max_failures

    def commit(self, page: Page) -> None:
        """The page is done: all it caused becomes real together."""
        if self._settle(page):
            page.lane.outbox.commits.append(page.work)
            page.lane.good += 1
            if page.work.children:
                page.lane.stir()
            self._exchange.wake()

    def fail(self, page: Page, error: BaseException) -> None:
        """The page ended in an error: done after all, delayed, or parked, by what the error says."""
        outcome = self._policy.outcome_of(error, page.lease.record.failures)
        if isinstance(outcome, Settled):
            page.work = PageCommit(page.lease.id, outcome=outcome.counter, key=page.work.key)
            if outcome.counter == GONE_COUNTER:
                self._absent(page)
            self.commit(page)
            return
        if not self._settle(page):
            return
        if isinstance(outcome, Retry) and outcome.pause_ms:
            if page.lane.good >= SERVED:  # others were served meanwhile: it is this page, not the site
                outcome = replace(outcome, pause_ms=0, counts=True)
            page.lane.good = 0
        if isinstance(outcome, Retry):
            if outcome.pause_ms:
                logger.warning("the site is left alone for %g s: %s", outcome.pause_ms / 1000, outcome.error)
                self._pause_site(page.lane, outcome.pause_ms)
            if outcome.counts and page.lease.record.failures + 1 >= self._max_failures:
                logger.warning("%s failed %d times and is parked: %s", page.request, self._max_failures, outcome.error)
            else:
                logger.info("%s is tried again in %d ms: %s", page.request, outcome.wait_ms, outcome.error)
            page.lane.outbox.delays.append(
                Delay(
                    page.lease.id,
                    outcome.wait_ms,
                    outcome.reason,
                    outcome.error,
                    outcome.pause_ms,
                    outcome.counts,
                )
            )
            page.lane.stir()  # to be told when it falls due
        elif isinstance(outcome, GiveUp):
            logger.warning("%s is parked as a dead letter: %s", page.request, outcome.error)
            page.lane.outbox.parks.append(Park(page.lease.id, outcome.reason, outcome.error))
        self._exchange.wake()

    def _absent(self, page: Page) -> None:
        """The site says that there is no such page: its commit says what that means."""
        if page.request is None:
            return
        absence = self._hooks.absence(page.request)
        page.work.gone, page.work.met = absence.gone, absence.met
        page.work.items += [orjson.dumps(item) for item in absence.items]
        if absence.instead is not None:
            self.add_child(page, absence.instead)

    def _pause_site(self, lane: LaneWork, pause_ms: int) -> None:
        """The delay pauses the page's own lane; the source's other partitions are the same site."""
        for other in self._lanes:
            if other is not lane and other.store.lane.source == lane.store.lane.source:
                other.outbox.pause_ms = max(other.outbox.pause_ms, pause_ms)

    def release(self, page: Page) -> None:
        """Give the page back untouched."""
        if self._settle(page):
            page.lane.outbox.releases.append(page.lease.id)
            self._exchange.wake()

    def _settle(self, page: Page) -> bool:
        if page.settled:
            return False
        page.settled = True
        page.lane.leaving[page.lease.id] = page
        self._feed.settled(page)
        return True

    def add_child(self, page: Page, request: Request) -> bool:
        """A follow-up of a page goes into that page's commit."""
        if page.settled:
            return False
        when, margin = request.meta.pop(WHEN, When.ALWAYS), request.meta.pop(MARGIN, 0)
        if isinstance(request.errback, GuardedErrback):  # replaced requests bring their parent's
            request.errback = request.errback.original
        try:
            data = self._hooks.encode(request)
        except TaskError as error:
            self.fail(page, error)
            return False
        if not page.work.fingerprint and page.request is not None:
            page.work.fingerprint = self._hooks.fingerprint(page.request)
        priority = EXPRESS_PRIORITY + max(0, request.priority) if page.express else request.priority
        page.work.children.append(Child(data, self._hooks.fingerprint(request), priority, when, margin))
        return True

    def add_root(self, lane: LaneWork, request: Request) -> bool:
        """A request that no page asked for goes into the shared queue with the next trip."""
        try:
            data = self._hooks.encode(request)
        except TaskError as error:
            logger.error("%s cannot be queued: %s", request, error)
            return False
        lane.outbox.roots.append(Child(data, self._hooks.fingerprint(request), request.priority))
        lane.stir()
        self._exchange.wake()
        return True
