"""The watcher: a thread with a connection of its own, for what must go on whatever the event loop is doing.

It waits for new tasks when there is nothing else to do (a blocking read, so an idle worker costs next to nothing and
starts at once), renews the leases of pages under way, and takes over what dead workers left behind.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from threadmill.crawl.lanes import LaneWork
from threadmill.crawl.page import Page
from threadmill.store.calls import Call, run_all
from threadmill.store.connection import BLOCK_MS, STORE_FAILURES, Client
from threadmill.store.restart import mend_file
from threadmill.store.streams import PENDING, TaskStreams, wait_for_tasks
from threadmill.store.work import Entry

logger = logging.getLogger(__name__)

LONGEST_PAGE_S = 3_600.0
"""A page older than this is no longer renewed: something in it hangs, and another worker may have better luck."""
TASKS_AT_ONCE = 32
"""Tasks of one read; admitted, they are any worker's."""
SILENCE_LEASES = 3
"""A worker silent for so many lease lifetimes, and at least a minute, is forgotten."""


class Watcher(threading.Thread):
    """Serves one worker; `deliver` is called on the event loop."""

    def __init__(
        self,
        client: Client,
        lanes: list[LaneWork],
        *,
        worker: str,
        lease_ttl_ms: int,
        max_deliveries: int,
        held: dict[str, Page],
        deliver: Callable[[LaneWork, list[Entry]], None],
        look: Callable[[], None],
        lost: Callable[[list[str]], None],
    ) -> None:
        super().__init__(name="threadmill-watcher", daemon=True)
        self._client = client
        self._lanes = lanes
        self._streams = {lane: TaskStreams(client, lane.store.keys, worker) for lane in lanes}
        self._worker = worker
        self._ttl_ms = lease_ttl_ms
        self._max_deliveries = max_deliveries
        self._held = held
        self._deliver = deliver
        self._look = look
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._watched: tuple[LaneWork, ...] = ()
        self._reading: tuple[LaneWork, ...] = ()
        """Those of the blocking read under way."""
        self._stopped = threading.Event()
        self._nudge = threading.Event()
        self._taken = threading.Event()
        """The event loop has taken what was read last; while it is blocked, nothing more is read."""
        self._taken.set()
        self._patient_until = 0.0
        self._rounds = 0
        self._connection: int | None = None

    def watch(self, lanes: Iterable[LaneWork]) -> None:
        """Wait for new tasks of these lanes, and leave the streams of others alone."""
        self._watched = tuple(lanes)
        if self._watched:
            self._nudge.set()

    @property
    def astray(self) -> bool:
        """Whether the read under way may bring what is to be left alone, or does not wait for all it should."""
        reading = set(self._reading)
        return bool(reading) and (any(lane.state for lane in reading) or not reading.issuperset(self._watched))

    def stop(self) -> None:
        self._stopped.set()
        self._nudge.set()

    def unblock(self, client: Client) -> None:
        """End a blocking read now, from another connection: nobody shall wait for it, or get what it would bring."""
        if self._connection is not None:
            client.client_unblock(self._connection)

    def run(self) -> None:
        every = min(self._ttl_ms / 3000, 5.0)
        due = time.monotonic() + every * random.random()
        while not self._stopped.is_set():
            try:
                if self._connection is None:
                    self._connection = int(self._client.client_id())
                    mend_file(self._client)
                now = time.monotonic()
                if now >= due:
                    self._keep()
                    due = now + every * random.uniform(0.8, 1.0)
                left = max(0.0, due - time.monotonic())
                lanes = self._watched
                if lanes and self._taken.is_set():
                    self._wait_for_tasks(lanes, min(left, BLOCK_MS / 1000))
                else:
                    self._nudge.wait(left)
                    self._nudge.clear()
            except STORE_FAILURES as error:
                # The exchange tells the operator; here we try again, and ask for what may have got lost.
                logger.debug("the watcher's connection failed: %s", error)
                self._connection = None
                # The others were cut off too: they shall renew their leases before anybody takes them over.
                self._patient_until = time.monotonic() + self._ttl_ms / 1000
                for lane in self._lanes:
                    lane.reread = True
                self._on_loop(self._look)
                self._stopped.wait(random.uniform(0.5, 1.5))

    def _wait_for_tasks(self, lanes: tuple[LaneWork, ...], seconds: float) -> None:
        """One blocking read over these lanes, express streams first."""
        self._reading = lanes
        if self._watched is not lanes:  # since we looked, and perhaps before anybody could see what we read
            self._reading = ()
            return
        block_ms = max(1, int(seconds * 1000))
        streams = [self._streams[lane] for lane in lanes]
        try:
            found = wait_for_tasks(self._client, streams, self._worker, TASKS_AT_ONCE, block_ms)
        finally:
            self._reading = ()
        if any(found):
            self._taken.clear()
            self._on_loop(self._take, lanes, found)

    def _keep(self) -> None:
        """Renew what is under way, say that we live, take over what the dead left."""
        self._rounds += 1
        oldest = self._loop.time() - LONGEST_PAGE_S
        pages = [page for page in list(self._held.values()) if page.since > oldest]
        silence_ms = max(60_000, SILENCE_LEASES * self._ttl_ms)
        calls: list[Call[Any]] = []
        for lane in self._lanes:
            store = lane.store
            ids = [page.lease.id for page in pages if page.lane is lane]
            ids += [page.lease.id for page in list(lane.leaving.values()) if page.since > oldest]
            ids += [lease_id for lease_id, since in list(lane.arriving.items()) if since > oldest]
            if ids:
                calls.append(store.renew(ids, ttl_ms=self._ttl_ms))
            calls.append(store.report(self._worker, -1, {}))
            if time.monotonic() >= self._patient_until:
                calls.append(store.reclaim(max_deliveries=self._max_deliveries, silence_ms=silence_ms))
        answers = run_all(self._client, calls)
        renewals = [answer for call, answer in zip(calls, answers, strict=True) if call.script.name == "renew"]
        lost = [lease_id for answer in renewals for lease_id in answer]
        lost += [page.lease.id for page in list(self._held.values()) if page.since <= oldest]
        if lost:
            self._on_loop(self._lost, lost)
        reclaimed = [answer for call, answer in zip(calls, answers, strict=True) if call.script.name == "reclaim"]
        if any(queued or parked for queued, parked, _ in reclaimed):
            queued, parked = sum(r[0] for r in reclaimed), sum(r[1] for r in reclaimed)
            logger.warning("took over %d pages of workers that stopped answering, parked %d", queued, parked)
            self._on_loop(self._look)
        if self._rounds % 3 == 1:
            for lane, streams in self._streams.items():
                # Our own too: a copy of a read that came late was answered to nobody.
                if entries := streams.read(TASKS_AT_ONCE, start=PENDING) + streams.claim(self._ttl_ms):
                    self._on_loop(self._deliver, lane, entries)

    def _take(self, lanes: Sequence[LaneWork], found: list[list[Entry]]) -> None:
        for lane, entries in zip(lanes, found, strict=True):
            self._deliver(lane, entries)
        self._taken.set()
        self._nudge.set()

    def _on_loop(self, act: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act, *args)
