"""Pieces of work as operators name and see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.ops.deployment import Deployment
from threadmill.ops.times import time_text
from threadmill.store.letters import Death
from threadmill.store.pieces import Piece, Place
from threadmill.store.portions import held

WAITING = (Place.EXPRESS, Place.TASKS, Place.DELAYED, Place.REQUESTS)
"""In the order in which work moves, so that what moves while it is read is met all the same."""

REMOVABLE = {
    "tasks": (Place.EXPRESS, Place.TASKS),
    "requests": (Place.REQUESTS,),
    "delayed": (Place.DELAYED,),
    "dead": (Place.DEAD,),
    "waiting": WAITING,
    "all": (*WAITING, Place.DEAD),
}
"""What `--queue` names where work is moved or thrown away. `waiting` is all but the dead letters."""

_TIMES = {Place.EXPRESS: "since", Place.TASKS: "since", Place.DELAYED: "due", Place.LEASED: "until", Place.DEAD: "at"}


def places_named(queue: str, queues: Mapping[str, Sequence[Place]]) -> Sequence[Place]:
    """The places that `--queue` names; `ConfigError` lists the names there are."""
    try:
        return queues[queue]
    except KeyError:
        raise ConfigError(f"unknown queue {queue!r}; queues are {', '.join(queues)}") from None


def held_in(deployment: Deployment, stage: Stage, places: Sequence[Place], source: str | None = None) -> int:
    """How many pieces lie in these places."""
    lanes = deployment.lanes(source)
    return sum(held(deployment.client, lane, stage.name, place) for lane in lanes for place in places)


def as_json(piece: Piece, lane: Lane) -> dict[str, Any]:
    """All that a piece says of itself, for scripts; what there is not is null."""
    letter = piece.letter
    return {
        "source": lane.source,
        "partition": lane.partition,
        "queue": str(piece.place),
        "key": piece.key or None,
        "page": piece.page,
        "job": piece.job or None,
        "express": piece.express,
        "priority": piece.priority,
        "since": _time(piece, "since"),
        "due": _time(piece, "due"),
        "until": _time(piece, "until"),
        "at": _time(piece, "at"),
        "before": piece.before,
        "worker": piece.holder or None,
        "letter": letter_name(piece, lane) if letter else None,
        "reason": letter.reason if letter else None,
        "error": letter.error if letter else None,
        "deliveries": piece.deliveries,
        "failures": piece.failures,
        "history": [death_json(death) for death in piece.history],
    }


def letter_name(piece: Piece, lane: Lane) -> str:
    """How `threadmill dead` calls it."""
    return f"{lane.source}.{lane.partition}:{piece.id.decode('utf-8', 'replace')}"


def death_json(death: Death) -> dict[str, Any]:
    return {
        "reason": death.reason,
        "at": time_text(death.at_ms),
        "deliveries": death.deliveries,
        "failures": death.failures,
        "error": death.error,
    }


def _time(piece: Piece, name: str) -> str | None:
    return time_text(piece.at_ms) if piece.at_ms and _TIMES.get(piece.place) == name else None
