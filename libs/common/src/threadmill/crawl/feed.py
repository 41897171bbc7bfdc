"""The feed: gets work for the engine. Reads tasks, leases requests, and hands them over as they are needed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable

from scrapy import Request

from threadmill.crawl.exchange import HELD_S, Errand, Exchange
from threadmill.crawl.hooks import SpiderHooks
from threadmill.crawl.intake import Intake
from threadmill.crawl.lanes import LaneWork
from threadmill.crawl.page import PAGE, Page
from threadmill.store.calls import is_full, is_no_group
from threadmill.store.streams import GROUP_GONE, NEW, PENDING
from threadmill.store.work import Entry, Leased, Park

logger = logging.getLogger(__name__)

EXPRESS_EVERY_S = 0.5
"""How often a busy worker looks for what operators asked for by hand."""
POLL_S = 1.8
"""How often an idle worker looks for requests that other workers queued or gave back."""
HEED_EVERY_S = 1.0
"""How often a worker that has pages in hand, or was told to stand still, hears what operators want."""
FULL = "it is full, and this stage would bring more; what waits in the others is worked off. Raise maxmemory"
BUFFER_S = 0.15
"""The buffer holds what is worked off in this time at the present speed, so that trips are hidden."""


class Feed:
    """Holds the worker's leased pages until they are settled; asks for more when they run low."""

    def __init__(
        self,
        exchange: Exchange,
        lanes: list[LaneWork],
        hooks: SpiderHooks,
        *,
        worker: str,
        concurrency: int,
        lease_ttl_ms: int,
    ) -> None:
        self._exchange = exchange
        self._lanes = lanes
        self._worker = worker
        self.concurrency = concurrency
        """Downloads at a time; operators may change it."""
        self._lease_ttl_ms = lease_ttl_ms
        self._hooks = hooks
        self._intake = Intake(hooks)
        self._numbers = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._fresh: deque[Request] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._express_at = 0.0
        self._settled = 0
        self._measured_at = self._loop.time()
        self._pages_per_s = 0.0
        self.held: dict[str, Page] = {}
        """Pages leased and not settled, by lease id."""
        self._buffered = 0
        self.stopped = False
        self.idle_since: float | None = None
        self.watched: frozenset[LaneWork] = frozenset()
        """Lanes that only new tasks can bring work to: the watcher waits for them."""
        self.on_watch: Callable[[frozenset[LaneWork]], None] = lambda _: None
        self.on_word: Callable[[LaneWork], None] = lambda _: None
        """Told when operators want something else of a lane."""
        exchange.board(self)

    def start(self) -> None:
        self._exchange.wake(now=True)

    def stop(self) -> None:
        """Lease and admit nothing more."""
        self.stopped = True
        self._watch(())
        if self._timer:
            self._timer.cancel()
        self._arrived.set()

    async def batch(self) -> list[Request]:
        """Leased requests, as soon as there are any; empty when the feed is stopped."""
        while not self._fresh and not self.stopped:
            self._arrived.clear()
            await self._arrived.wait()
        batch = list(self._fresh)
        self._fresh.clear()
        return batch

    def took(self, left: int) -> None:
        """The engine took a request from the buffer, which now holds `left`."""
        self._buffered = left
        if left <= self._prefetch() // 2:
            self._exchange.wake()

    def settled(self, page: Page) -> None:
        """A page is settled; its place is free."""
        if self.held.pop(page.lease.id, None) is not None:
            page.lane.in_hand -= 1
        self._settled += 1

    def drop_settled(self) -> None:
        """Forget what was given back before it was handed over."""
        self._fresh = deque(request for request in self._fresh if not request.meta[PAGE].settled)

    def lost(self, lease_ids: list[str]) -> None:
        """These leases are another's now, or their pages hang: their places are free, and what they say is nobody's."""
        pages = [page for lease_id in lease_ids if (page := self.held.pop(lease_id, None)) is not None]
        for page in pages:
            page.settled = True
            page.lane.in_hand -= 1
        if pages:
            logger.warning(
                "%d pages are no longer ours: their leases expired or Redis lost them, or they took over an hour",
                len(pages),
            )
        self._exchange.wake()

    def deliver(self, lane: LaneWork, entries: list[Entry]) -> None:
        """Tasks that were read from the lane's streams."""
        if entries:
            self._intake.take(lane, entries)
            self._exchange.wake(now=True)

    def look(self) -> None:
        """There may be work: look now."""
        for lane in self._lanes:
            lane.stir()
        self._exchange.wake(now=True)

    # A passenger of the exchange -------------------------------------------------------------------------------------

    def starving(self) -> bool:
        return self._buffered == 0 and len(self.held) < self.concurrency

    def connection_failed(self) -> None:
        for lane in self._lanes:
            lane.reread = True

    def errands(self) -> list[Errand]:
        errands: list[Errand] = []
        for lane in self._lanes:
            errands += self._intake.errands(lane)
        if self.stopped or self._exchange.refused:
            return errands
        now, room = self._loop.time(), self._room()
        lanes = [lane for lane in self._lanes if lane.urgent or (room > 0 and lane.look_at <= now)]
        for lane in lanes:
            errands += self._lease_errands(lane, max(lane.urgent, math.ceil(room / len(lanes))))
            lane.urgent = 0
        errands += [self._leasing(lane, 0) for lane in self._lanes if self._deaf(lane, now)]
        if now >= self._express_at:
            self._express_at = now + EXPRESS_EVERY_S
            read = [lane for lane in lanes if self._wanted(lane)]  # with their leases, express first
            errands += [
                self._reading(lane, self.concurrency, tasks=False) for lane in self._unread() if lane not in read
            ]
        if not lanes:
            self._look_later(now)
        return errands

    def _deaf(self, lane: LaneWork, now: float) -> bool:
        """Whether a lane with pages in hand has not heard from operators for too long: a slow site takes long."""
        return lane.in_hand > 0 and now - lane.asked_at >= HEED_EVERY_S

    def _unread(self) -> list[LaneWork]:
        """Lanes whose task streams are ours to read: not the watcher's, and not to be left alone."""
        return [lane for lane in self._lanes if lane not in self.watched and not lane.state]

    def _lease_errands(self, lane: LaneWork, share: int) -> list[Errand]:
        errands = [self._leasing(lane, share)]
        lane.stirred = False
        if lane.reread:
            errands.append(self._reading(lane, 1000, start=PENDING))
        if (wanted := self._wanted(lane)) and lane not in self.watched:
            errands.append(self._reading(lane, wanted))
        return errands

    def _leasing(self, lane: LaneWork, share: int) -> Errand:
        """Ask for leases; for none of them, only hear what operators want."""
        lane.asked_at = self._loop.time()
        number, clock = next(self._numbers), self._loop.time
        call = lane.leasing(share, worker=self._worker, number=number, ttl_ms=self._lease_ttl_ms, clock=clock)

        def failed(error: Exception) -> None:
            # Not worth keeping: nothing was leased, and another call will do.
            logger.warning("Redis gives no leases: %s", FULL if is_full(error) else error)
            now = self._loop.time()
            lane.look_at = now + HELD_S
            self._look_later(now)

        return Errand(call, lambda leased: self._leased(lane, share, leased), must=False, failed=failed)

    def _reading(self, lane: LaneWork, count: int, *, tasks: bool = True, start: str = NEW) -> Errand:
        def failed(error: Exception) -> None:
            if is_no_group(error):
                logger.warning(GROUP_GONE)
                asyncio.ensure_future(self._exchange.in_thread(lane.streams.ensure_groups))  # noqa: RUF006
            else:
                logger.error("tasks could not be read: %s", error)

        def done(entries: list[Entry]) -> None:
            if start == PENDING:
                lane.reread = False
            self.deliver(lane, entries)

        return Errand(lane.streams.reading(count, tasks=tasks, start=start), done, must=False, failed=failed)

    # What comes back -------------------------------------------------------------------------------------------------

    def _leased(self, lane: LaneWork, asked: int, leased: Leased) -> None:
        now = self._loop.time()
        lane.arriving = {}
        if self.stopped:  # the answer came too late: given back, not left to expire
            lane.outbox.releases += [lease.id for lease in leased.leases]
            self._exchange.wake()
            return
        for lease in leased.leases:
            page = Page(lane, lease, now)
            try:
                request = self._hooks.decode(lease.record.payload, lane.store.lane.source)
            except Exception as error:  # whatever a spider's own decoding raises
                logger.error("a queued request cannot be read and is parked: %r", error)
                lane.outbox.parks.append(Park(lease.id, "unreadable-request", repr(error)))
                self._exchange.wake()
                continue
            page.work.key = self._hooks.key(request)
            request.meta[PAGE] = page
            self.held[lease.id] = page
            lane.in_hand += 1
            self._fresh.append(request)
        if self._fresh:
            self._arrived.set()
        lane.waiting = leased.waiting
        if (leased.state, leased.concurrency) != (lane.state, lane.limit):
            lane.state, lane.limit = leased.state, leased.concurrency
            self.on_word(lane)
        if lane.stands or len(leased.leases) < asked:
            # An operator or another stage said no, or the queue is empty, or the site's rate allows no more now.
            lane.expecting = lane.stands or leased.look_again_ms >= 0
            wait = leased.look_again_ms / 1000 if leased.look_again_ms >= 0 else POLL_S
            wait = min(wait, HEED_EVERY_S if lane.state else POLL_S)
            lane.look_at = 0.0 if lane.stirred else now + wait
        self._look_later(now)

    def _look_later(self, now: float) -> None:
        """Look again when a lane has something due; with no work at all, tell that only new tasks can bring some."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self.stopped:
            return
        if self._room() <= 0:
            self.idle_since = None
            self._watch(())
            self._timer = self._loop.call_later(EXPRESS_EVERY_S, self._exchange.wake)
            return
        dry = all(lane.look_at > now for lane in self._lanes)
        if not dry or self.held or any(lane.expecting for lane in self._lanes):
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = now
        self._watch([lane for lane in self._lanes if self._wanted(lane)] if dry else ())
        at = min(lane.look_at for lane in self._lanes)
        if self._unread():
            at = min(at, self._express_at)
        if self.held:
            at = min(at, now + HEED_EVERY_S)
        self._timer = self._loop.call_later(max(0.0, at - now), self._exchange.wake)

    def _watch(self, lanes: Iterable[LaneWork]) -> None:
        watched = frozenset(lanes)
        if watched != self.watched:
            self.watched = watched
            self.on_watch(watched)

    def _room(self) -> int:
        return self.concurrency + self._prefetch() - len(self.held)

    def _wanted(self, lane: LaneWork) -> int:
        """Tasks to be admitted now. The backlog stays in the stream; the queue holds one fill, and its children.

        None of a lane that stands still or drains.
        """
        if lane.state:
            return 0
        return max(0, self.concurrency + self._prefetch() - lane.waiting - len(lane.admitting))

    def _prefetch(self) -> int:
        now = self._loop.time()
        if now - self._measured_at >= 0.5:
            self._pages_per_s = self._settled / (now - self._measured_at)
            self._settled, self._measured_at = 0, now
        return max(4, min(512, math.ceil(self._pages_per_s * BUFFER_S)))
