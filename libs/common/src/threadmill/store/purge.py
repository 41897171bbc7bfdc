"""Throwing a stage's work away, because somebody said so."""

from __future__ import annotations

from threadmill.model.keys import Lane
from threadmill.store.connection import Client
from threadmill.store.glob import escaped


def flush_stage(client: Client, lane: Lane, stage: str) -> int:
    """Delete all keys of a stage in a lane: its tasks, requests, leases, dupefilter, letters and counters.

    Jobs keep their books, so a job whose work is thrown away never ends. Returns how many keys were deleted.
    """
    keys = list(client.scan_iter(match=f"{escaped(lane.stage(stage).base)}:*", count=1000))
    return sum(int(client.unlink(*keys[at : at + 500])) for at in range(0, len(keys), 500))
