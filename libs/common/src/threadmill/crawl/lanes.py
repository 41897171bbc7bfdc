"""A lane as a worker serves it: its verbs, its streams, its site's pace, and what is to be said about it next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from threadmill.store.calls import Call
from threadmill.store.connection import Client
from threadmill.store.stage import StageStore
from threadmill.store.streams import TaskStreams
from threadmill.store.work import (
    NO_MARKS,
    Admission,
    Child,
    Delay,
    Entry,
    Leased,
    Marks,
    PageCommit,
    Park,
    Refusal,
)

if TYPE_CHECKING:
    from threadmill.crawl.page import Page


@dataclass
class Outbox:
    """Settlements waiting for the next trip to Redis."""

    commits: list[PageCommit] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    parks: list[Park] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)
    roots: list[Child] = field(default_factory=list)
    pause_ms: int = 0
    """The site asked to be left alone, through another partition of it."""

    def __len__(self) -> int:
        pages = len(self.commits) + len(self.delays) + len(self.parks) + len(self.releases)
        return pages + len(self.roots) + bool(self.pause_ms)


@dataclass(eq=False)
class LaneWork:
    """One lane of a worker's stage. Times are seconds on the event loop's clock."""

    store: StageStore
    streams: TaskStreams
    interval_us: int = 0
    """Between two requests to the site, over all replicas; 0 = no limit."""
    marks: Marks = NO_MARKS
    outbox: Outbox = field(default_factory=Outbox)
    admissions: list[Admission] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    admitting: set[tuple[bool, bytes]] = field(default_factory=set)
    """Entries taken from the streams whose admission Redis has not confirmed yet."""
    waiting: int = 0
    """Requests in the queue, when leases were last asked for."""
    good: int = 0
    """Pages done since the site last asked to wait."""
    urgent: int = 0
    """Express requests admitted here and not leased yet: they do not wait for room."""
    look_at: float = 0.0
    """Not to be asked for leases before this time."""
    asked_at: float = 0.0
    """When it was last asked; the answer says what operators want, too."""
    in_hand: int = 0
    """Its pages that are leased and not settled."""
    state: str = ""
    """What the last answer said: `paused`, `draining`, `held:` by what; empty = it goes on as ever."""
    limit: int | None = None
    """Downloads at a time of one worker, if an operator said so."""
    expecting: bool = False
    """Something waits for its time: a delayed request, or the site's rate."""
    leaving: dict[str, Page] = field(default_factory=dict)
    """Pages that are settled and whose settlement Redis has not confirmed: their leases are renewed until then."""
    arriving: dict[str, float] = field(default_factory=dict)
    """Leases whose answer was read and which the event loop does not know yet, with the time: renewed all the same."""
    stirred: bool = False
    """Something happened that may have brought work since leases were last asked for."""
    reread: bool = False
    """A reply may have been lost: entries delivered to us may be unknown to us."""

    @classmethod
    def serving(cls, client: Client, store: StageStore, worker: str, interval_us: int, marks: Marks) -> LaneWork:
        return cls(store, TaskStreams(client, store.keys, worker), interval_us, marks)

    def leasing(self, want: int, *, worker: str, number: int, ttl_ms: int, clock: Callable[[], float]) -> Call[Leased]:
        """A lease call. Whoever reads the answer, in whatever thread, notes its leases as `arriving`."""
        pace, marks = self.interval_us, self.marks
        call = self.store.lease(want, worker=worker, number=number, ttl_ms=ttl_ms, interval_us=pace, marks=marks)

        def read(reply: Any) -> Leased:
            leased = call.read(reply)
            self.arriving = dict.fromkeys((lease.id for lease in leased.leases), clock())
            return leased

        return replace(call, read=read)

    @property
    def paused(self) -> bool:
        """Whether an operator wants no page of it to be begun."""
        return self.state == "paused"

    @property
    def stands(self) -> bool:
        """Whether it gives no leases for now: paused, or held until others have caught up."""
        return self.state not in ("", "draining")

    def carried(self, lease_ids: list[str]) -> None:
        """Redis has these settlements."""
        for lease_id in lease_ids:
            self.leaving.pop(lease_id, None)

    def stir(self) -> None:
        """There may be work in this lane: look now, whatever an answer under way says."""
        self.look_at, self.stirred = 0.0, True

    def unknown(self, entries: list[Entry]) -> list[Entry]:
        """Those of the entries that are not being admitted already."""
        return [entry for entry in entries if entry.name not in self.admitting]
