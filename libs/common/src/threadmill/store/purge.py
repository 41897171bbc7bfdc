"""Taking a stage's work out of it, because somebody said so."""

from __future__ import annotations

from collections.abc import Sequence

from threadmill.model.keys import GROUP, Lane
from threadmill.store.calls import Arg, Call
from threadmill.store.connection import Client
from threadmill.store.glob import escaped
from threadmill.store.pieces import STREAMS, Piece, Place
from threadmill.store.scripts import compose
from threadmill.store.stage import StageStore

DROPPED = "dropped"
"""The counter of work that was thrown away, and"""
EXPORTED = "exported"
"""of work that was taken elsewhere."""


def purge(store: StageStore, place: Place, pieces: Sequence[Piece], *, counter: str, forget: bool) -> Call[int]:
    """Take pieces of one place out of the stage; answers how many still lay there. Leased ones cannot be.

    They count as done, and as `counter`. With `forget` the task filter forgets that they were submitted, so that they
    may be submitted again; where another version was known before, that is known again.
    """
    keys = store.keys
    queues = (keys.tasks, keys.express, keys.requests, keys.delayed, keys.dead, keys.dead_index)
    args: list[Arg] = [store.stage.name, GROUP, counter, place]
    for piece in pieces:
        # What was pushed from outside asked no filter.
        asked = forget and piece.key != "" and (place not in STREAMS or piece.streamed)
        key_id = store.task_filter.id_of(piece.key) if asked else ""
        args += [piece.id, piece.job, int(piece.streamed), key_id, piece.known, int(piece.force)]
    script = compose("purge", {"seen_request": store.request_filter.lua, "seen_task": store.task_filter.lua})
    return Call(script, (*queues, keys.stats, keys.runs, keys.seen, store.lane.jobs_prefix), tuple(args), int)


def flush_stage(client: Client, lane: Lane, stage: str) -> int:
    """Delete all keys of a stage in a lane: its tasks, requests, leases, dupefilter, letters and counters.

    Jobs keep their books, so a job whose work is thrown away never ends. Returns how many keys were deleted.
    """
    keys = list(client.scan_iter(match=f"{escaped(lane.stage(stage).base)}:*", count=1000))
    return sum(int(client.unlink(*keys[at : at + 500])) for at in range(0, len(keys), 500))
