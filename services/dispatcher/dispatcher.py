"""The dispatcher: looks at what is due in all lanes, has it scanned, and sleeps until the next board is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

from dispatcher.decision import decide, put_off
from threadmill.model.errors import StoreUnavailable
from threadmill.model.keys import Lane
from threadmill.ops.stop import Stop
from threadmill.store.calls import Call, run_all
from threadmill.store.connection import STORE_FAILURES, Client
from threadmill.store.schedule import LOOKS, Change, Dispatched, Due, Scan, Schedule

logger = structlog.get_logger()

SLEEP_S = (0.05, 1.0)
"""Shortest sleep, so that boards due at nearly the same time go together; and longest: what an operator adds is seen
after it, and the fleet sees that this dispatcher lives."""
PAUSES_S = (0.1, 5.0)
"""First and longest pause before Redis is asked again; it doubles."""


class Dispatcher:
    """Any number may run: of two that look at a board at once one is quicker, and the other's script does nothing.

    It keeps nothing between two rounds, so it may be killed at any moment.
    """

    def __init__(
        self,
        client: Client,
        lanes: Sequence[Lane],
        stop: Stop,
        *,
        name: str,
        threshold: int,
        reload: Callable[[], None],
    ) -> None:
        self._client = client
        self._schedules = [Schedule(lane) for lane in lanes]
        self._stop = stop
        self._name = name
        self._threshold = threshold
        self._reload = reload
        self._told: set[tuple[str, str]] = set()
        """Boards whose entries cannot be read, which was said."""

    def run(self) -> int:
        """Dispatch until told to stop; answers how many scans that were."""
        scans, pause_s = 0, PAUSES_S[0]
        while not self._stop.requested:
            try:
                self._reload_if_told()
                dispatched, sleep_s = self.round()
                scans, pause_s = scans + dispatched, PAUSES_S[0]
            except (*STORE_FAILURES, StoreUnavailable) as error:
                logger.warning(f"Redis failed: {error}; trying again", pause_s=pause_s)
                sleep_s, pause_s = pause_s, min(2 * pause_s, PAUSES_S[1])
            self._stop.wait(sleep_s)
        with suppress(*STORE_FAILURES):  # the others forget it after a minute
            run_all(self._client, [each.leave(self._name) for each in self._schedules])
        return scans

    def _reload_if_told(self) -> None:
        if not self._stop.reload_requested:
            return
        self._stop.reload_requested = False
        try:
            self._reload()
        except (*STORE_FAILURES, StoreUnavailable):
            self._stop.reload_requested = True
            raise

    def round(self) -> tuple[int, float]:
        """Look at all lanes once: how many scans were dispatched, and for how long there is nothing to do (s)."""
        looked: list[Due] = run_all(
            self._client, [each.due(self._name, threshold=self._threshold) for each in self._schedules]
        )
        dispatches: list[Call[list[Dispatched]]] = []
        plans: list[Call[list[bool]]] = []
        for schedule, due in zip(self._schedules, looked, strict=True):
            scans, changes = self._decide(schedule.lane, due)
            if scans:
                dispatches.append(schedule.dispatch(scans, threshold=self._threshold))
            if changes:
                plans.append(schedule.plan(changes))
        answers = run_all(self._client, [*dispatches, *plans])
        outcomes = Counter(outcome for answer in answers[: len(dispatches)] for outcome in answer)
        if outcomes:
            logger.debug("dispatched", **{outcome.name.lower(): number for outcome, number in outcomes.items()})
        if not outcomes[Dispatched.NO_ROOM] and any(len(due.looks) == LOOKS for due in looked):
            return outcomes[Dispatched.YES], 0.0
        shortest, longest = SLEEP_S
        until_next = min((due.next_ms / 1000 for due in looked if due.next_ms >= 0), default=longest)
        return outcomes[Dispatched.YES], max(shortest, min(longest, until_next))

    def _decide(self, lane: Lane, due: Due) -> tuple[list[Scan], list[Change]]:
        scans: list[Scan] = []
        changes: list[Change] = []
        for look in due.looks:
            name = (lane.prefix, look.board.id)
            try:
                look.board.id.encode()  # what is no text cannot be a board's id
                decided = decide(lane.source, look, due.now_ms)
                self._told.discard(name)
            except ValueError as error:
                if name not in self._told:
                    logger.error(f"{error}; remove the board and add it again", lane=lane.prefix)
                    self._told.add(name)
                decided = put_off(look, due.now_ms)
            if isinstance(decided, Scan):
                scans.append(decided)
            else:
                changes.append(decided)
        return scans, changes
