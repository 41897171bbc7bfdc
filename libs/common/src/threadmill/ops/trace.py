"""Where a post, or a board, is: looked for in every place of every stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES, Stage
from threadmill.model.task import Task
from threadmill.ops import pieces
from threadmill.ops.deployment import Deployment
from threadmill.ops.times import time_text
from threadmill.store.calls import run
from threadmill.store.find import Search, to_look_at
from threadmill.store.pieces import Piece, Place
from threadmill.store.work import Known

NEVER_SEEN = "never seen"

_FOREMOST = (Place.LEASED, Place.EXPRESS, Place.REQUESTS, Place.TASKS, Place.DELAYED, Place.DEAD)
"""Of several pieces of one key, the one that gives the state."""
_STATES = {
    Place.LEASED: "leased",
    Place.EXPRESS: "express",
    Place.REQUESTS: "queued",
    Place.TASKS: "waiting",
    Place.DELAYED: "delayed",
    Place.DEAD: "dead",
}


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What one stage of one lane knows of a key."""

    stage: Stage
    lane: Lane
    pieces: Sequence[Piece]
    """The work of it that is there now."""
    known: Known | None
    """What the task filter remembers of it."""

    @property
    def seen(self) -> bool:
        return bool(self.pieces) or self.known is not None

    @property
    def state(self) -> str:
        """never seen, leased, express, queued, waiting, delayed, dead, done, gone, or known: submitted, and nowhere."""
        for place in _FOREMOST:
            if any(piece.place is place for piece in self.pieces):
                return _STATES[place]
        if self.known is None:
            return NEVER_SEEN
        return "known" if self.known.earlier else self.known.outcome or "known"

    def as_json(self) -> dict[str, Any]:
        known = self.known
        return {
            "source": self.lane.source,
            "partition": self.lane.partition if self.seen else None,
            "stage": self.stage.name,
            "state": self.state,
            "version": known.version if known else None,
            "outcome": (known.outcome or None) if known else None,
            "outcome_of_this_version": bool(known and known.outcome and not known.earlier),
            "outcome_at": time_text(known.at_s * 1000) if known and known.outcome else None,
            "pieces": [pieces.as_json(piece, self.lane) for piece in self.pieces],
        }


def trace(
    deployment: Deployment,
    key: str,
    *,
    stage: Stage | None = None,
    source: str | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> list[Whereabouts]:
    """What every stage knows of a key, one for each lane that knows it, or one that does not if none does.

    `told` is called with how many pieces were looked at since it was last called.
    """
    if not key.isprintable():
        raise ConfigError(f"{key!r} is no id: it has characters that cannot be printed")
    Task(stage="", source="", key=key).checked()
    found = []
    for name in [deployment.source(source).name] if source else deployment.sources:
        lanes = deployment.lanes(name)
        for each in [stage] if stage else STAGES.values():
            places = [_whereabouts(deployment, lane, each, key, told) for lane in lanes]
            found += [place for place in places if place.seen] or places[:1]
    return found


def extent(deployment: Deployment, *, stage: Stage | None = None, source: str | None = None) -> int:
    """How many pieces a trace looks at."""
    lanes = deployment.lanes(source)
    stages = [stage] if stage else list(STAGES.values())
    return sum(to_look_at(deployment.client, lane, each.name) for lane in lanes for each in stages)


def _whereabouts(
    deployment: Deployment, lane: Lane, stage: Stage, key: str, told: Callable[[int], None]
) -> Whereabouts:
    found = list(_once(Search(deployment.client, lane, stage.name, key, told).pieces()))
    known = run(deployment.client, deployment.store(lane, stage).known(key))
    if not found and known is not None and (known.earlier or not known.outcome):
        # It may have gone back to a place that had been looked through.
        found = list(_once(Search(deployment.client, lane, stage.name, key).pieces()))
        known = run(deployment.client, deployment.store(lane, stage).known(key))
    return Whereabouts(stage, lane, found, known)


def _once(found: Iterator[Piece]) -> Iterator[Piece]:
    """The foremost first. A page that was met in two places has moved: the later one counts."""
    pages: dict[tuple[int, str, str] | bytes, Piece] = {}
    for piece in found:
        name = piece.id if piece.page is None else (piece.page, piece.job, getattr(piece.what, "run", ""))
        pages.pop(name, None)
        pages[name] = piece
    yield from sorted(pages.values(), key=lambda piece: (_FOREMOST.index(piece.place), piece.page or 0))
