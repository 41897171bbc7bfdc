"""Throwing a stage's work away, because somebody said so."""

from __future__ import annotations

from threadmill.model.keys import Lane
from threadmill.store.connection import Client


def flush_stage(client: Client, lane: Lane, stage: str) -> int:
    """Delete all keys of a stage in a lane: its tasks, requests, leases, dupefilter, letters and counters.

    Jobs keep their books, so a job whose work is thrown away never ends. Returns how many keys were deleted.
    """
    keys = list(client.scan_iter(match=f"{_escaped(lane.stage(stage).base)}:*", count=1000))
    return sum(int(client.unlink(*keys[at : at + 500])) for at in range(0, len(keys), 500))


def _escaped(text: str) -> str:
    """Redis's glob pattern for this very text."""
    return "".join(f"\\{character}" if character in "*?[]^\\" else character for character in text)
