"""What idle workers send: fleets of several shapes, each on a Redis of its own, and what arrives there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench.commands_seen import commands_seen
from bench.redis_server import redis_server
from bench.services import Services, services

_NOBODY = "http://127.0.0.1:9"  # an idle worker asks no site


@dataclass(frozen=True, slots=True)
class Shape:
    """A fleet: workers a stage, and the lanes each of them serves."""

    replicas: Mapping[str, int]
    lanes: int = 1

    @property
    def workers(self) -> int:
        return sum(self.replicas.values())

    @property
    def name(self) -> str:
        plural = "s" if self.lanes > 1 else ""
        return f"{self.workers} idle worker{'s' if self.workers > 1 else ''}, {self.lanes} lane{plural}"


@dataclass(frozen=True, slots=True)
class Idling:
    """What a fleet of `workers` sent in `seconds`."""

    name: str
    workers: int
    seconds: float
    commands: Counter[str]

    @property
    def per_worker(self) -> float:
        """Commands/s of one worker."""
        return self.commands.total() / self.seconds / self.workers

    def figures(self) -> dict[str, Any]:
        """For JSON: commands/s of one worker, all and by command."""
        rates = {name: round(number / self.seconds / self.workers, 3) for name, number in self.commands.most_common()}
        return {"workers": self.workers, "commands_per_s_per_worker": round(self.per_worker, 3), "by_command": rates}


def shapes(workers: int, lanes: Sequence[int]) -> list[Shape]:
    """One worker for each of these numbers of lanes, and `workers` of all stages with one."""
    third, rest = divmod(workers, 3)
    return [
        *(Shape({"detail": 1}, number) for number in lanes),
        Shape({"list": third, "detail": third + rest, "comment": third}),
    ]


def start_fleets(stack: ExitStack, fleets: Sequence[Shape]) -> list[tuple[Shape, int, Services]]:
    """Starts them all at once; gives each with its Redis's port."""
    started = []
    for shape in fleets:
        port = stack.enter_context(redis_server())
        running = stack.enter_context(services(port, _NOBODY, shape.replicas, partitions=shape.lanes))
        started.append((shape, port, running))
    return started


def watch_idling(fleets: Sequence[tuple[str, int, int]], seconds: float) -> list[Idling]:
    """Counts what arrives at each of these (name, workers, Redis port), all at the same time."""
    with ThreadPoolExecutor(len(fleets)) as pool:
        counts = list(pool.map(lambda fleet: commands_seen(fleet[2], seconds), fleets))
    return [Idling(name, workers, seconds, seen) for (name, workers, _), seen in zip(fleets, counts, strict=True)]
