"""Jobs: all that descends from one submission. Their books are kept by the verbs that move work."""

from __future__ import annotations

from threadmill.model.keys import Lane
from threadmill.store.calls import Call
from threadmill.store.scripts import compose

_ANNOUNCE = compose("announce")


def announce(lane: Lane, job: str, for_ms: int, *, keep_s: int | None = None) -> Call[int]:
    """Say that more of a job comes to the lane within `for_ms`, so that it is not finished before; 0: no more.

    Its books are kept for `keep_s` once it is finished, by default thirty days.
    """
    return Call(_ANNOUNCE, (lane.jobs_prefix,), (job, for_ms, keep_s if keep_s is not None else ""), int)
