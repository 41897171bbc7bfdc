"""What is to happen to a board that is looked at: it is dispatched, or looked at again later."""

from __future__ import annotations

from dataclasses import replace

from threadmill.model.board import Board
from threadmill.ops.submission import new_job_id
from threadmill.store.schedule import Change, Look, Scan

LOOK_MS = 60_000
"""A scan is looked at so long after it was dispatched, at the latest: what it brought decides when the next is due."""
AGAIN_MS = (1_000, 30_000)
"""A board that is due and being scanned is looked at again after a quarter of its lateness, within these bounds."""
UNREADABLE_MS = 60_000
"""An entry that cannot be read is looked at again after this long."""


def decide(source: str, look: Look, now_ms: int) -> Scan | Change:
    """Raises `ValueError` for an entry that cannot be read."""
    read, due_ms = look.board, look.board.due_ms
    if not read.entry or due_ms is None:  # somebody removed it, or wrote nonsense
        return Change(read, read.entry, None)
    board = Board.from_json(read.entry, source=source, id=read.id)
    if not board.active:
        return Change(read, read.entry, None)
    if look.scanning:
        return _wait(look, due_ms, now_ms)
    if board.last.open:
        before, board = board.due_next(), board.looked_at(look.brought, dead=look.dead)
        if before != (after := board.due_next()) and due_ms == before:  # who made it due at another time meant that
            due_ms = max(now_ms, after)
    if due_ms > now_ms:
        return Change(read, board.to_json(), due_ms, due_ms)
    scanned = board.dispatched(new_job_id(), at_ms=now_ms, due_ms=due_ms)
    due_next_ms = scanned.due_next()
    change = Change(read, scanned.to_json(), due_next_ms, min(due_next_ms, now_ms + LOOK_MS))
    return Scan(change, scanned.task(), board.last.job)


def put_off(look: Look, now_ms: int) -> Change:
    """An entry that cannot be read stays, so that somebody can see it."""
    return Change(look.board, look.board.entry, look.board.due_ms, now_ms + UNREADABLE_MS)


def _wait(look: Look, due_ms: int, now_ms: int) -> Change:
    """Its last scan is under way."""
    same = Change(look.board, look.board.entry, due_ms)
    if due_ms > now_ms:
        return replace(same, look_ms=min(due_ms, now_ms + LOOK_MS))
    shortest, longest = AGAIN_MS
    again_ms = min(longest, max(shortest, (now_ms - due_ms) // 4))
    return replace(same, look_ms=now_ms + again_ms, counter="skipped_busy")
