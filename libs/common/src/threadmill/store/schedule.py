"""The schedule of a lane: which boards are due, and the verbs that dispatch, plan and look at them, as calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import redis

from threadmill.model.keys import Lane
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.store.calls import Arg, Call, Command, run, run_all
from threadmill.store.clock import clock_ms
from threadmill.store.filters import Dupefilter, VersionedFilter
from threadmill.store.scripts import Fragment, compose
from threadmill.store.status import SILENCE_MS

KEEP_S = 3_600
"""How long the books of a finished scan are kept: boards are many, and what came of a scan is in the board's entry."""
FORGET_MS = 60_000
"""A dispatcher that was silent for so long is forgotten."""
BATCH = 200
"""Boards that are read or planned in one call: a script holds Redis for a few ms at most."""
LOOKS = 50
"""Boards that are looked at and dispatched in one call, which costs more."""

_BOARD = {"board": Fragment("lib/board.lua")}
_LATENESS = compose("lateness")


@dataclass(frozen=True, slots=True)
class Read:
    """A board as it was read: what a change must find unchanged."""

    id: str
    due: bytes = b""
    """When it is due (ms) as Redis spells it; empty: it is not on the schedule."""
    entry: bytes = b""
    """Its JSON; empty: there is no such board."""

    @property
    def due_ms(self) -> int | None:
        """When it is due; None when it is not, or nobody can tell."""
        try:
            return int(float(self.due))
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class Look:
    """A board that a dispatcher is to look at, and how its last scan stands."""

    board: Read
    scanning: bool
    """Its last scan is under way."""
    brought: int | None
    """What that handed down; None if nobody knows."""
    dead: bool
    """Pages of it are dead letters."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be looked at in a lane."""

    now_ms: int
    """Redis's clock."""
    waiting: int
    """Boards to be looked at; more than `looks` if there is no room for more scans, or they are more than a batch."""
    next_ms: int
    """Until another one is to be looked at; -1 if there is none."""
    looks: list[Look]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a board, if it is still as it was read."""

    board: Read
    entry: bytes
    """Empty: it goes."""
    due_ms: int | None
    """None: it leaves the schedule."""
    look_ms: int = 0
    """When a dispatcher looks at it next."""
    counter: str = ""
    """A counter of the schedule that goes up by one."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A board to dispatch: its task, and what becomes of the board."""

    change: Change
    task: Task
    last_job: str
    """The job of the scan before: while that is under way, there is no other."""


class Dispatched(IntEnum):
    """What became of a board that was to be dispatched."""

    ELSEWHERE = 0
    """Somebody else changed it meanwhile: another dispatcher was quicker."""
    YES = 1
    NO_ROOM = 2
    """Its stage has as much as the threshold allows."""
    BUSY = 3
    """It is still being scanned."""


@dataclass(frozen=True, slots=True)
class ScheduleBooks:
    """How a schedule stands; counters since ever."""

    boards: int = 0
    scheduled: int = 0
    """Those that are not paused."""
    due: int = 0
    lateness_ms: int = 0
    """How long the one that has waited longest is due."""
    dispatchers: int = 0
    dispatched: int = 0
    late_ms: int = 0
    """How late all dispatched scans were, added up."""
    skipped_busy: int = 0
    """Times that a due board was still being scanned."""
    skipped_full: int = 0
    """Looks at which due boards found no room under the threshold."""

    def __add__(self, other: ScheduleBooks) -> ScheduleBooks:
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        sums["lateness_ms"] = max(self.lateness_ms, other.lateness_ms)
        sums["dispatchers"] = max(self.dispatchers, other.dispatchers)  # each serves all lanes
        return ScheduleBooks(**sums)


class Schedule:
    """Builds the verbs of a lane's schedule; holds no connection and no state."""

    def __init__(self, lane: Lane, *, task_filter: Dupefilter | None = None) -> None:
        self.lane = lane
        self._filter = task_filter or VersionedFilter()
        self._stage = lane.stage(LIST.name)
        self._target = LIST.hands_to[0]
        self._roots = (lane.looks, lane.schedule, lane.boards, lane.schedule_stats)
        self._due, self._plan = compose("due", _BOARD), compose("plan", _BOARD)
        self._dispatch = compose("dispatch", {**_BOARD, "seen_task": self._filter.lua})

    def due(self, dispatcher: str, *, threshold: int, want: int = LOOKS) -> Call[Due]:
        """What is to be looked at now; says that the dispatcher lives."""
        keys = (*self._roots, self.lane.dispatchers, self.lane.jobs_prefix, *self._queue())
        args = (dispatcher, FORGET_MS, LIST.name, self._target, threshold, want)
        return Call(self._due, keys, args, _due)

    def plan(self, changes: Sequence[Change]) -> Call[list[bool]]:
        """Change boards; answers for each whether it is now so, or somebody else was quicker."""
        args: list[Arg] = []
        for change in changes:
            args += [*_as_read(change.board), *_as_written(change), change.counter]
        return Call(self._plan, (*self._roots, self.lane.jobs_prefix), tuple(args), _flags)

    def dispatch(self, scans: Sequence[Scan], *, threshold: int) -> Call[list[Dispatched]]:
        """Have boards scanned; answers what became of each."""
        args: list[Arg] = [LIST.name, self._target, threshold, KEEP_S]
        for scan in scans:
            args += [*_as_read(scan.change.board), *_as_written(scan.change)]
            args += [scan.last_job, scan.task.job, self._filter.id_of(scan.task.key), scan.task.extras()]
        keys = (*self._roots, self.lane.jobs_prefix, *self._queue(), self._stage.stats, self._stage.seen)
        return Call(self._dispatch, keys, tuple(args), _dispatched)

    def leave(self, dispatcher: str) -> Command[int]:
        """Remove a dispatcher's sign of life when it stops in good order."""
        return Command(("ZREM", self.lane.dispatchers, dispatcher), int)

    def read(self, client: redis.Redis, ids: Sequence[str]) -> list[Read]:
        """These boards as they are, in this order."""
        found = []
        for at in range(0, len(ids), BATCH):
            some = ids[at : at + BATCH]
            entries: Command[list[bytes | None]] = Command(("HMGET", self.lane.boards, *some), list)
            dues: Command[list[bytes | None]] = Command(("ZMSCORE", self.lane.schedule, *some), list)
            for each, entry, due in zip(some, *run_all(client, [entries, dues]), strict=True):
                found.append(Read(each, _spelled(due), entry or b""))
        return found

    def ids(self, client: redis.Redis) -> Iterator[str]:
        """Every board of the lane, once."""
        seen: set[bytes] = set()
        for name, _ in client.hscan_iter(self.lane.boards, count=BATCH):
            if name not in seen:
                seen.add(name)
                yield name.decode("utf-8", "backslashreplace")

    def _queue(self) -> tuple[str, ...]:
        stage = self._stage
        return stage.tasks, stage.express, stage.requests, stage.leases, stage.delayed


def schedule_books(client: redis.Redis, lanes: Sequence[Lane]) -> ScheduleBooks:
    """How the schedules of these lanes stand, added up."""
    calls = [
        Call(_LATENESS, (lane.schedule, lane.boards, lane.schedule_stats, lane.dispatchers), (SILENCE_MS,), _books)
        for lane in lanes
    ]
    return sum(run_all(client, calls), ScheduleBooks())


def alive(client: redis.Redis, lane: Lane) -> list[str]:
    """The dispatchers that said lately that they live."""
    since = clock_ms(client) - SILENCE_MS
    names = run(client, Command(("ZRANGEBYSCORE", lane.dispatchers, since, "+inf"), list))
    return [name.decode("utf-8", "replace") for name in names]


def _as_read(board: Read) -> list[Arg]:
    return [board.id.encode("utf-8", "surrogateescape"), board.due, board.entry]


def _as_written(change: Change) -> list[Arg]:
    due: Arg = "" if change.due_ms is None else change.due_ms
    return [due, change.entry, change.look_ms]


def _due(reply: list[Any]) -> Due:
    now_ms, waiting, next_ms, *found = reply
    looks = []
    for at in range(0, len(found), 6):
        name, due, entry, scanning, brought, dead = found[at : at + 6]
        read = Read(name.decode("utf-8", "surrogateescape"), due, entry)
        looks.append(Look(read, bool(scanning), brought if brought >= 0 else None, bool(dead)))
    return Due(now_ms, waiting, next_ms, looks)


def _books(reply: list[int]) -> ScheduleBooks:
    return ScheduleBooks(*reply)


def _dispatched(reply: list[int]) -> list[Dispatched]:
    return [Dispatched(each) for each in reply]


def _flags(reply: list[int]) -> list[bool]:
    return [bool(each) for each in reply]


def _spelled(due: Any) -> bytes:
    """A score as Redis spells it to scripts; the client reads some replies as numbers."""
    if due is None:
        return b""
    if isinstance(due, float):
        return b"%d" % due if due.is_integer() else repr(due).encode()
    return bytes(due)
