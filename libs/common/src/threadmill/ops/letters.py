"""Dead letters as an operator handles them: found by stage, reason and id, replayed or dropped in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.ops.deployment import Deployment
from threadmill.ops.pieces import death_json
from threadmill.ops.times import time_text
from threadmill.store.calls import Call, run
from threadmill.store.letters import DeadLetter, dead_letters

BATCH = 200
"""Letters of one call."""


@dataclass(frozen=True, slots=True)
class Found:
    """A letter and the lane it lies in. `name` is unique in the deployment: `<source>.<partition>:<id>`."""

    lane: Lane
    letter: DeadLetter

    @property
    def name(self) -> str:
        return f"{self.lane.source}.{self.lane.partition}:{self.letter.id}"

    def as_json(self) -> dict[str, Any]:
        letter = self.letter
        return {
            "id": self.name,
            "reason": letter.reason,
            "kind": letter.kind,
            "at": time_text(letter.at_ms),
            "job": letter.job,
            "error": letter.error,
            "deliveries": letter.deliveries,
            "failures": letter.failures,
            "history": [death_json(death) for death in letter.history],
            "body": letter.body.decode("utf-8", "backslashreplace"),
        }


def find(
    deployment: Deployment,
    stage: Stage,
    *,
    source: str | None = None,
    reason: str | None = None,
    names: Sequence[str] = (),
) -> Iterator[Found]:
    """The letters of a stage, oldest first in each lane; only those of this reason and these names, if given."""
    wanted = set(names)
    for lane in deployment.lanes(source):
        for letter in dead_letters(deployment.client, lane, stage.name):
            found = Found(lane, letter)
            if (reason is None or letter.reason == reason) and (not wanted or found.name in wanted):
                yield found


def replay(deployment: Deployment, stage: Stage, found: Sequence[Found], told: Callable[[int], None]) -> int:
    """Send them back to work; answers how many still lay there."""
    return _each(deployment, found, told, lambda lane, ids: deployment.store(lane, stage).replay(ids))


def drop(deployment: Deployment, stage: Stage, found: Sequence[Found], told: Callable[[int], None]) -> int:
    """Give them up for good; answers how many still lay there."""
    return _each(deployment, found, told, lambda lane, ids: deployment.store(lane, stage).drop(ids))


def _each(
    deployment: Deployment,
    found: Sequence[Found],
    told: Callable[[int], None],
    call: Callable[[Lane, list[str]], Call[int]],
) -> int:
    total = 0
    for lane in dict.fromkeys(each.lane for each in found):
        ids = [each.letter.id for each in found if each.lane == lane]
        for at in range(0, len(ids), BATCH):
            batch = ids[at : at + BATCH]
            total += run(deployment.client, call(lane, batch))
            told(len(batch))
    return total
