"""Throwing waiting work away, so that the books balance and jobs end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from threadmill.model.stages import Stage
from threadmill.ops.deployment import Deployment
from threadmill.store.calls import run
from threadmill.store.pieces import Place
from threadmill.store.portions import portions
from threadmill.store.purge import DROPPED, purge


def throw_away(
    deployment: Deployment,
    stage: Stage,
    places: Sequence[Place],
    *,
    source: str | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> Counter[str]:
    """Drop what lies in these places; answers how many of each. Leased pages are left to their workers."""
    dropped: Counter[str] = Counter()
    for lane in deployment.lanes(source):
        store = deployment.store(lane, stage)
        for place in places:
            for portion in portions(deployment.client, lane, stage.name, place):
                call = purge(store, place, portion, counter=DROPPED, forget=True)
                dropped[place] += run(deployment.client, call)
                told(len(portion))
    return dropped
