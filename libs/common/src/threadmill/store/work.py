"""The values verbs take and give: leases, and what pages cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from threadmill.model.task import Task

SEPARATOR = b"\x1f"


@dataclass(frozen=True, slots=True)
class Death:
    """Why work was parked once, before it was replayed."""

    at_ms: int
    reason: str
    deliveries: int
    failures: int
    error: str

    @classmethod
    def parse_all(cls, history: bytes) -> tuple[Death, ...]:
        """Read what lua/lib/work.lua's `remember` wrote, oldest first."""
        deaths = [death.split(b"\x1d") for death in history.split(b"\x1e") if death]
        return tuple(
            cls(int(at), _text(reason), int(deliveries), int(failures), _text(error))
            for at, reason, deliveries, failures, error in deaths
        )


@dataclass(frozen=True, slots=True)
class Record:
    """A request as the store keeps it: its payload, and what the store itself must know. See lua/lib/work.lua."""

    job: str
    run: str
    """The task this request descends from within its stage; its pages share a dupefilter."""
    priority: int
    deliveries: int
    """How often a worker died with it."""
    failures: int
    """How often it was tried in vain."""
    history: bytes
    """What it died of before it was replayed; `Death.parse_all` reads it."""
    payload: bytes

    @classmethod
    def parse(cls, data: bytes) -> Record:
        job, run, priority, deliveries, failures, history, payload = data.split(SEPARATOR, 6)
        return cls(job.decode(), run.decode(), int(priority or 0), int(deliveries), int(failures), history, payload)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a request, until it expires."""

    id: str
    record: Record


@dataclass(frozen=True, slots=True)
class Leased:
    """The answer of a lease call."""

    leases: list[Lease]
    waiting: int
    """Requests still waiting in the stage's queue."""
    look_again_ms: int
    """When a look may bring more (a delayed request falls due, the site's rate allows it); -1 if nothing is known."""


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
        """What the task died of before it was replayed; see `Death`."""
        return self.fields.get(b"h", b"").replace(SEPARATOR, b"")

    @property
    def name(self) -> tuple[bool, bytes]:
        """Which entry it is: the two streams may have equal ids."""
        return (self.express, self.id)

    @property
    def run(self) -> str:
        return ("x" if self.express else "") + self.id.decode()

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


@dataclass(frozen=True, slots=True)
class Child:
    """A follow-up request of the same stage."""

    payload: bytes
    fingerprint: str
    """Its id for the dupefilter; empty: do not filter."""
    priority: int = 0
    when: When = When.ALWAYS


@dataclass(slots=True)
class PageCommit:
    """Everything one page caused."""

    lease_id: str
    fingerprint: str = ""
    """The page's own, so that its descendants do not queue it again."""
    outcome: str = ""
    """A counter besides `done`: `gone`, `ignored`."""
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


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Parked work. `body` is the task's bytes, or the request's payload."""

    id: str
    reason: str
    kind: str
    """`task` (never admitted) or `request`."""
    at_ms: int
    error: str
    job: str
    body: bytes
    deliveries: int
    """How often its worker died with it, and"""
    failures: int
    """how often it was tried in vain: counted apart, and since it was last replayed."""
    history: tuple[Death, ...]
    """What it died of before that."""

    @classmethod
    def parse(cls, letter_id: bytes, data: bytes) -> DeadLetter:
        reason, kind, at, error, body = data.split(SEPARATOR, 4)
        if kind == b"task":
            job, history, body = body.split(SEPARATOR, 2)
            record = Record(_text(job), "", 0, 0, 0, history, body)
        else:
            record = Record.parse(body)
        return cls(
            letter_id.decode(),
            _text(reason),
            _text(kind),
            int(at),
            _text(error),
            record.job,
            record.payload,
            record.deliveries,
            record.failures,
            Death.parse_all(record.history),
        )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
