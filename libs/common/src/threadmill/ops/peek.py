"""What waits in a stage, in the order in which it would come, without taking it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, zip_longest

from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.ops.deployment import Deployment
from threadmill.store.pieces import Piece, Place
from threadmill.store.portions import PORTION, portions

QUEUES = {
    "tasks": (Place.EXPRESS, Place.TASKS),
    "requests": (Place.REQUESTS,),
    "delayed": (Place.DELAYED,),
    "leased": (Place.LEASED,),
    "all": (Place.LEASED, Place.REQUESTS, Place.EXPRESS, Place.TASKS, Place.DELAYED),
}


def peek(
    deployment: Deployment, stage: Stage, place: Place, *, limit: int, source: str | None = None
) -> list[tuple[Lane, Piece]]:
    """The first pieces of a place. Lanes take turns: workers lease fairly."""
    lanes = deployment.lanes(source)
    size = min(limit, PORTION)
    firsts = [
        [(lane, piece) for piece in islice(_pieces(deployment, lane, stage, place, size), limit)] for lane in lanes
    ]
    turns = chain.from_iterable(zip_longest(*firsts))
    return [one for one in turns if one is not None][:limit]


def _pieces(deployment: Deployment, lane: Lane, stage: Stage, place: Place, size: int) -> Iterator[Piece]:
    for portion in portions(deployment.client, lane, stage.name, place, size):
        yield from portion
