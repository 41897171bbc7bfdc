"""The boards of a deployment as they are listed: when each is due, how late it is, what its last scan brought."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from threadmill.model.board import Board
from threadmill.ops.boards import known_board
from threadmill.ops.deployment import Deployment
from threadmill.store.clock import clock_ms
from threadmill.store.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Row:
    """A board, and its place in the schedule at an instant."""

    source: str
    id: str
    board: Board | None
    """None: its entry cannot be read."""
    due_ms: int | None
    """None: it is paused."""
    now_ms: int

    @property
    def is_due(self) -> bool:
        return self.due_ms is not None and self.due_ms <= self.now_ms

    @property
    def late_ms(self) -> int:
        return max(0, self.now_ms - self.due_ms) if self.due_ms is not None else 0


def rows(deployment: Deployment, source: str | None = None) -> list[Row]:
    """All boards, those that are due first at the top, paused ones at the end."""
    client, found = deployment.client, list[Row]()
    now_ms = clock_ms(client)
    for lane in deployment.lanes(source):
        schedule = Schedule(lane)
        reads = schedule.read(client, list(schedule.ids(client)))
        found += [Row(lane.source, read.id, known_board(lane, read), read.due_ms, now_ms) for read in reads]
    return sorted(found, key=lambda row: (row.due_ms is None, row.due_ms or 0, row.source, row.id))


def as_json(row: Row) -> dict[str, Any]:
    """A row for scripts. Times are ISO 8601, UTC."""
    board, body = row.board, {"source": row.source, "id": row.id, "readable": row.board is not None}
    due: dict[str, Any] = {"due": _iso(row.due_ms), "late_ms": row.late_ms}
    if board is None:
        return body | due
    last = board.last
    plan = {**board.interval.spelled(), "full_every_s": board.full_every_s, "priority": board.priority}
    state = {"params": dict(board.params), "paused": not board.active, "live": board.live, "pace_s": last.pace_s}
    scan = {"job": last.job, "at": _iso(last.at_ms or None), "late_ms": last.late_ms, "full": last.full}
    came = {"open": last.open, "brought": last.brought, "dead": last.dead, "number": last.number}
    return body | due | plan | state | {"last": scan | came}


def _iso(at_ms: int | None) -> str | None:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds") if at_ms is not None else None
