"""The values verbs take and give: leases, and what pages cause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from threadmill.model.task import Task

SEPARATOR = b"\x1f"
_PAST = b"\x1c"
_HISTORY = re.compile(rb"(?:\d{1,15}\x1d[^\x1d-\x1f]{0,500}\x1d\d{1,15}\x1d\d{1,15}\x1d[^\x1d-\x1f]{0,500}\x1e){0,10}")


@dataclass(frozen=True, slots=True)
class Record:
    """A request as the store keeps it: its payload, and what the store itself must know. See lua/lib/work.lua."""

    job: str
    run: str
    """All that one task caused in its stage, named by its first request's sequence; it has a dupefilter of its own."""
    priority: int
    deliveries: int
    """How often a worker died with it."""
    failures: int
    """How often it was tried in vain."""
    history: bytes
    """What it died of before it was replayed; see `letters.Death`."""
    payload: bytes

    @classmethod
    def parse(cls, data: bytes) -> Record:
        job, run, priority, past, payload = data.split(SEPARATOR, 4)
        deliveries, failures, history = past.split(_PAST, 2) if past else (0, 0, b"")
        return cls(job.decode(), run.decode(), int(priority or 0), int(deliveries), int(failures), history, payload)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a request, until it expires."""

    id: str
    record: Record


@dataclass(frozen=True, slots=True)
class Marks:
    """Backpressure: a stage leases nothing above a high mark, and goes on below the low one. 0: no mark."""

    backlog_high: int = 0
    """Tasks and requests that wait in a stage it hands down to."""
    backlog_low: int = 0
    items_high: int = 0
    """Pages whose items no store has yet."""
    items_low: int = 0


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class Known:
    """What a stage's task filter remembers of a key."""

    version: str
    outcome: str
    """`done`, `gone`, or empty while it was never finished."""
    at_s: int
    """When it was last done or gone (s, Redis clock); 0 if never."""
    earlier: bool = False
    """It came to that at an earlier version, and was submitted again at this one."""


@dataclass(frozen=True, slots=True)
class Leased:
    """The answer of a lease call."""

    leases: list[Lease]
    waiting: int
    """Requests still waiting in the stage's queue."""
    look_again_ms: int
    """When a look may bring more (a delayed request falls due, the site's rate allows it); -1 if nothing is known."""
    state: str = ""
    """`paused`, `draining`, `held:<stage>` or `held:items` (backpressure); empty when all is as ever."""
    concurrency: int | None = None
    """Downloads at a time that an operator wants of every worker."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a task stream, as it was read."""

    id: bytes
    express: bool
    fields: Mapping[bytes, bytes]

    @property
    def streamed(self) -> bool:
        """Whether submit wrote it (and counted it), or somebody outside pushed it."""
        return b"j" in self.fields

    @property
    def history(self) -> bytes:
        """What the task died of before it was replayed; see `letters.Death`."""
        history = self.fields.get(b"h", b"")
        return history if _HISTORY.fullmatch(history) else b""  # anybody may have pushed it

    @property
    def name(self) -> tuple[bool, bytes]:
        """Which entry it is: the two streams may have equal ids."""
        return (self.express, self.id)

    @property
    def raw(self) -> bytes:
        """Its bytes as they came, for a dead letter."""
        if b"task" in self.fields:
            return self.fields[b"task"]
        return b" ".join(name + b"=" + value for name, value in self.fields.items())


@dataclass(frozen=True, slots=True)
class Admission:
    """A task and the root requests it turns into: (priority, payload) each."""

    entry: Entry
    job: str
    roots: Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A task that cannot be admitted."""

    entry: Entry
    reason: str
    error: str


class When(IntEnum):
    """The condition under which a commit queues a follow-up, decided where the truth is."""

    ALWAYS = 0
    SOMETHING_NEW = 1
    """Only if this commit submitted a subtask that was not known."""
    NOTHING_NEW = 2


class Met(IntEnum):
    """What is remembered of the posts that a page of a board listed."""

    NO = 0
    REMEMBER = 1
    """That the board listed them."""
    COMPARE = 2
    """The same, for a scan of the whole board: at its end those are asked for that stood there and were not listed."""


@dataclass(frozen=True, slots=True)
class Child:
    """A follow-up request of the same stage."""

    payload: bytes
    fingerprint: str
    """Its id for the dupefilter; empty: do not filter."""
    priority: int = 0
    when: When = When.ALWAYS
    margin: int = 0
    """With SOMETHING_NEW: only if fewer than so many subtasks at the end of the page were known. 0: however many."""


@dataclass(slots=True)
class PageCommit:
    """Everything one page caused."""

    lease_id: str
    fingerprint: str = ""
    """The page's own, so that its descendants do not queue it again."""
    outcome: str = ""
    """A counter besides `done`: `gone`, `ignored`."""
    key: str = ""
    """The key of the task it belongs to; empty for pages of no task."""
    gone: bool = False
    """The key's subject is no more."""
    met: Met = Met.NO
    children: list[Child] = field(default_factory=list)
    subtasks: list[Task] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    """JSON objects."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What came of a page's commit; `ok` is False when the page was fenced and nothing happened."""

    ok: bool
    queued: int
    submitted: int
    filtered: int


@dataclass(frozen=True, slots=True)
class Delay:
    """A failed page, to be tried again after `wait_ms`; the whole site is left alone for `pause_ms`."""

    lease_id: str
    wait_ms: int
    reason: str
    error: str
    pause_ms: int = 0
    counts: bool = True
    """Whether it is a failure of the page; being told to wait is not."""


@dataclass(frozen=True, slots=True)
class Park:
    """A page that no retry will help."""

    lease_id: str
    reason: str
    error: str
