"""Who works on a deployment: every process, in whichever lanes it serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment
from threadmill.ops.health import WRITER_SILENCE_MS
from threadmill.ops.times import time_text
from threadmill.store.clock import clock_ms
from threadmill.store.crew import Hand, dispatchers, item_writers, workers
from threadmill.store.status import SILENCE_MS

ITEM_WRITER, DISPATCHER = "item_writer", "dispatcher"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process of a service, over all its lanes. Times are ms since 1970 on Redis's clock; 0: not known."""

    service: str
    stage: str
    """Empty for those that are no stage's."""
    id: str
    sources: tuple[str, ...]
    since_ms: int
    seen_ms: int
    silent: bool
    """It gave no sign of life for so long that it is not counted as alive."""
    leases: int
    ends_ms: int
    entries: int

    @property
    def host(self) -> str:
        return self.id.rsplit("-", 2)[0]

    @property
    def process(self) -> str:
        parts = self.id.rsplit("-", 2)
        return parts[1] if len(parts) == 3 else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "service": self.service,
            "stage": self.stage or None,
            "id": self.id,
            "host": self.host,
            "process": int(self.process) if self.process.isdigit() else None,
            "sources": list(self.sources),
            "since": _time(self.since_ms),
            "seen": _time(self.seen_ms),
            "silent": self.silent,
            "leases": self.leases,
            "first_lease_ends": _time(self.ends_ms),
            "entries": self.entries,
        }


def crew(deployment: Deployment) -> list[Worker]:
    """Every process that Redis knows of: workers stage by stage, then item writers, then dispatchers."""
    client, lanes, now = deployment.client, deployment.lanes(), clock_ms(deployment.client)
    found: list[Worker] = []
    for stage in STAGES.values():
        hands = [(lane, hand) for lane in lanes for hand in workers(client, lane, stage.name)]
        found += _merged(stage.service, stage.name, hands, now - SILENCE_MS)
    writers = [(lane, hand) for lane in lanes for hand in item_writers(client, lane, now)]
    found += _merged(ITEM_WRITER, "", writers, now - WRITER_SILENCE_MS)
    schedulers = [(lane, hand) for lane in lanes for hand in dispatchers(client, lane)]
    found += _merged(DISPATCHER, "", schedulers, now - SILENCE_MS)
    return found


def _merged(service: str, stage: str, hands: list[tuple[Lane, Hand]], alive_ms: int) -> Iterator[Worker]:
    """A process is in the books of every lane it serves: it is one all the same."""
    for name in dict.fromkeys(hand.id for _, hand in hands):
        mine = [hand for _, hand in hands if hand.id == name]
        seen = max(hand.seen_ms for hand in mine)
        yield Worker(
            service,
            stage,
            name,
            tuple(dict.fromkeys(lane.source for lane, hand in hands if hand.id == name)),
            min((hand.since_ms for hand in mine if hand.since_ms), default=0),
            seen,
            seen < alive_ms,
            sum(hand.leases for hand in mine),
            min((hand.ends_ms for hand in mine if hand.ends_ms), default=0),
            sum(hand.entries for hand in mine),
        )


def _time(ms: int) -> str | None:
    return time_text(ms) if ms else None
