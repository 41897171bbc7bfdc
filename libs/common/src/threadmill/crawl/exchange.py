"""The exchange: all that a worker says to Redis, gathered into as few round trips as possible (group commit).

One coroutine decides what travels; one thread carries it. Nothing here blocks the event loop, and only one trip is
under way at a time, so the order of what was said is the order in which it happens.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from threadmill.crawl.lanes import LaneWork
from threadmill.store.calls import Call, Command, attempt_all
from threadmill.store.connection import STORE_FAILURES, Client, UnsendableError
from threadmill.store.work import PageCommit

logger = logging.getLogger(__name__)

LINGER_S = 0.025
"""A settled page waits this long for others to travel with, while there is other work to do."""
LINGER_STARVING_S = 0.004
"""The same when there is none: its children may be the only work left."""
FULL_TRIP = 64
"""Settlements that depart without waiting."""
BACKOFF_S = (0.1, 2.0)
"""First and longest pause between attempts while Redis does not answer."""
HEAVIEST_CALL = 10_000
"""Pages and what they caused, in one script call: a few ms of Redis, and far below its limit of arguments."""
UNSENT = object()
HELD_S = 1.0
"""Pause after Redis refused to write (it is full, or a replica): nothing is dropped, nothing new is leased."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A call, and who is told its answer (or the error Redis gave it; True = handled)."""

    call: Call[Any] | Command[Any]
    done: Callable[[Any], None]
    must: bool = True
    """Whether it is carried again when Redis refuses it, until it is taken."""
    failed: Callable[[Exception], None] | None = None
    unsent: Callable[[], None] = lambda: None
    """Told when it could not be sent at all and is given up."""


class Passenger(Protocol):
    """Who has errands: asked before every trip."""

    def errands(self) -> list[Errand]: ...

    def starving(self) -> bool:
        """Whether there is nothing to do but wait for the trip's answers."""
        ...

    def connection_failed(self) -> None:
        """Replies may have been lost."""
        ...


class Exchange:
    """Carries the settlements of pages, and the errands of its passengers."""

    def __init__(self, client: Client, lanes: list[LaneWork], max_failures: int, *, telling: bool = False) -> None:
        """`telling`: events are written for posts that are complete."""
        self._client = client
        self._telling = telling
        self._lanes = lanes
        self._max_failures = max_failures
        self._passengers: list[Passenger] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="threadmill-exchange")
        self._held: list[Errand] = []
        self._refused = False
        self._call = asyncio.Event()
        self._wanted = False
        self._task: asyncio.Task[None] | None = None
        self.trips = 0
        self.closing = False

    def board(self, passenger: Passenger) -> None:
        self._passengers.append(passenger)

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    def wake(self, *, now: bool = False) -> None:
        """There is something to carry; `now` does not wait for company."""
        self._wanted = self._wanted or now
        self._call.set()

    @property
    def refused(self) -> bool:
        """Whether Redis answers but does not take what it is told: no time to lease more."""
        return self._refused or bool(self._held)

    async def close(self, wait_s: float) -> None:
        """Carry what is left, for at most `wait_s`; leases that could not be settled expire and are taken by others."""
        self.closing = True
        if self._task is not None:
            self.wake(now=True)
            _, pending = await asyncio.wait({self._task}, timeout=wait_s)
            if pending:
                logger.warning("Redis did not take the last settlements in %g s; their leases will expire", wait_s)
                self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, act: Callable[[], Any]) -> Any:
        """Do something else that talks to Redis, between trips, on the exchange's connection."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)

    def _pending(self) -> int:
        return sum(len(lane.outbox) for lane in self._lanes)

    async def _run(self) -> None:
        while not await self._trip():
            pass

    async def _trip(self) -> bool:
        """Wait until there is something to carry, and carry it. True when the exchange is closed and all is said."""
        try:
            await self._call.wait()
            if not self._wanted and not self.closing:
                await self._linger()
            self._call.clear()
            self._wanted = False
            errands = self._held + self._settlements()
            self._refused, self._held = bool(self._held), []
            for passenger in self._passengers:
                errands += passenger.errands()
            if errands:
                await self._carry(errands)
        except Exception:
            # Nothing here may end the exchange: without it the worker would hold its leases and do nothing.
            logger.exception("a trip to Redis failed unexpectedly; pages of it that were not settled will expire")
            await asyncio.sleep(HELD_S)
            for passenger in self._passengers:
                passenger.connection_failed()
            self._call.set()
        if self._held:
            await asyncio.sleep(HELD_S)
        if self.refused:  # who was told to hold back is asked again: nobody else would wake us
            self._call.set()
        return self.closing and not self._pending() and not self._held

    async def _linger(self) -> None:
        starving = all(passenger.starving() for passenger in self._passengers)
        loop = asyncio.get_running_loop()
        until = loop.time() + (LINGER_STARVING_S if starving else LINGER_S)
        while (left := until - loop.time()) > 0 and self._pending() < FULL_TRIP and not self._wanted:
            self._call.clear()
            try:
                await asyncio.wait_for(self._call.wait(), left)
            except TimeoutError:
                break

    async def _carry(self, errands: list[Errand]) -> None:
        try:
            answers = await self._send(errands)
        except Exception as error:
            # Something in it cannot be sent at all. Each alone, then, so that only that one fails.
            logger.exception("a trip cannot be sent as a whole: %s", error)
            answers = [await self._alone(errand) for errand in errands]
        self.trips += 1
        for errand, answer in zip(errands, answers, strict=True):
            try:
                self._tell(errand, answer)
            except Exception:
                logger.exception("the answer to a %s could not be used", _name(errand))

    async def _send(self, errands: list[Errand]) -> list[Any]:
        """Say it until Redis answers; raises only what no repetition would change."""
        loop = asyncio.get_running_loop()
        calls = [errand.call for errand in errands]
        pause, longest = BACKOFF_S
        while True:
            try:
                answers: list[Any] = await loop.run_in_executor(self._thread, attempt_all, self._client, calls)
                return answers
            except UnsendableError:
                raise
            except STORE_FAILURES as error:
                # Any of the calls may have run: all are safe to run again.
                logger.warning("Redis does not answer (%s); trying again", error)
                for passenger in self._passengers:
                    passenger.connection_failed()
                await asyncio.sleep(pause)
                pause = min(pause * 2, longest)

    async def _alone(self, errand: Errand) -> Any:
        try:
            return (await self._send([errand]))[0]
        except Exception as error:
            logger.error("a %s cannot be sent and is given up: %s", _name(errand), error)
            return UNSENT

    def _tell(self, errand: Errand, answer: Any) -> None:
        if answer is UNSENT:
            errand.unsent()
        elif not isinstance(answer, Exception):
            errand.done(answer)
        elif errand.must:
            logger.error("Redis refused a %s, which is kept and tried again: %s", _name(errand), answer)
            self._held.append(errand)
        elif errand.failed:
            errand.failed(answer)
        else:
            logger.error("Redis refused a %s: %s", _name(errand), answer)

    def _settlements(self) -> list[Errand]:
        errands: list[Errand] = []
        for lane in self._lanes:
            box, store = lane.outbox, lane.store
            lane.outbox = type(box)()
            errands += [
                _settling(lane, store.commit(pages, telling=self._telling), [page.lease_id for page in pages])
                for pages in _loads(box.commits)
            ]
            if box.delays:
                call = store.delay(box.delays, max_failures=self._max_failures)
                errands.append(_settling(lane, call, [page.lease_id for page in box.delays]))
            if box.parks:
                errands.append(_settling(lane, store.park(box.parks), [page.lease_id for page in box.parks]))
            if box.releases:
                errands.append(_settling(lane, store.release(box.releases), box.releases))
            if box.roots:
                errands.append(Errand(store.enqueue(box.roots, token=secrets.token_hex(8)), _ignore))
            if box.pause_ms:
                errands.append(Errand(store.hold(box.pause_ms), _ignore))
        return errands


def _loads(pages: list[PageCommit]) -> Iterator[list[PageCommit]]:
    """Pages in portions that one script call can carry: a page may have thousands of children."""
    load: list[PageCommit] = []
    weight = 0
    for page in pages:
        heft = 1 + len(page.children) + 2 * len(page.subtasks)
        if load and (weight + heft > HEAVIEST_CALL or len(load) >= FULL_TRIP):
            yield load
            load, weight = [], 0
        load.append(page)
        weight += heft
    if load:
        yield load


def _settling(lane: LaneWork, call: Call[Any], lease_ids: list[str]) -> Errand:
    """A settlement: until Redis has confirmed it, the watcher goes on renewing these leases."""
    return Errand(call, lambda _: lane.carried(lease_ids), unsent=lambda: lane.carried(lease_ids))


def _ignore(_: Any) -> None:
    """What came of a settlement is counted in Redis; a fenced page needs nothing more."""


def _name(errand: Errand) -> str:
    return errand.call.script.name if isinstance(errand.call, Call) else str(errand.call.command[0])
