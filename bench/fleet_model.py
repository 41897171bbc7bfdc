"""The model of a fleet: what N workers ask of Redis, from the constants that `bench scale` measures.

`python -m bench.fleet_model` prints the tables of docs/scaling.md from data/bench/scale.json.
"""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from bench.report import FOLDER
from threadmill.crawl.exchange import LINGER_S

HEADROOM = 0.6
"""The share of a core that a shard should be planned for: bursts, rewrites of its file and operators need the rest."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What things cost, as measured. Times are of Redis's CPU."""

    page_us: float
    """A page: its lease, its commit, its share of admissions."""
    trip_us: float
    """A trip that carries some pages, whatever they are; see `fitted`."""
    file_us: float
    """More for a page with an append-only file, synced every second."""
    writer_us: float
    """The item writer, a page."""
    idle_asked_per_s: float
    """What a worker of one partition without work asks."""
    own_us_per_s: float
    """A Redis that nobody uses."""
    idle_us_per_s: float
    """A worker without work, beyond that."""
    idle_bytes_per_s: float
    lane_asked_per_s: float
    """What a worker of several lanes without work asks, for each of them."""
    lane_us_per_s: float
    bytes_per_page: float
    """In and out of Redis, the item writer's too."""
    disk_bytes: float
    """Of the append-only file, a page."""
    waiting_bytes: float
    """Memory of a page's items until they are stored."""
    connections: float
    """Of a worker."""
    connection_bytes: float
    """Memory of a worker's connections."""
    writer_pages_per_s: float
    """One item writer with SQLite."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a fleet asks of Redis, over all shards together. Megabytes are 10^6 bytes."""

    workers: int
    pages_per_s: float
    """Of each worker."""
    trips_per_s: float
    """Of each worker."""
    total_pages_per_s: float
    redis_cores: float
    shards: int
    """Redis servers, each planned for `HEADROOM`."""
    network_mb_per_s: float
    disk_mb_per_s: float
    connections: int
    """Of the workers, to one server."""
    connections_mb: float
    """Memory of these."""
    idle_cores: float
    """Redis's CPU if no worker has work."""
    writers: float
    """Item writers with SQLite that would keep up."""


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(page_us, trip_us) of the line page_us + trip_us / x nearest to points (pages per trip, Redis µs a page)."""
    line = statistics.linear_regression([1 / pages for pages, _ in points], [us for _, us in points])
    return line.intercept, line.slope


def trips_per_s(pages_per_s: float, redis_away_s: float = 0.0) -> float:
    """How often a worker speaks to Redis: a page settles, others may join it for the linger, then the trip itself."""
    return 1 / (1 / pages_per_s + LINGER_S + redis_away_s)


def fleet(constants: Constants, workers: int, pages_per_s: float, redis_away_s: float = 0.0) -> Fleet:
    """`workers` at `pages_per_s` each, one partition each of whatever source they serve."""
    trips = trips_per_s(pages_per_s, redis_away_s)
    pages = workers * pages_per_s
    cores = (
        pages * (constants.page_us + constants.file_us + constants.writer_us) + workers * trips * constants.trip_us
    ) / 1e6
    connections = round(workers * constants.connections)
    return Fleet(
        workers,
        pages_per_s,
        trips,
        pages,
        cores,
        math.ceil(cores / HEADROOM),
        pages * constants.bytes_per_page / 1e6,
        pages * constants.disk_bytes / 1e6,
        connections,
        connections * constants.connection_bytes / constants.connections / 1e6,
        (constants.own_us_per_s + workers * constants.idle_us_per_s) / 1e6,
        pages / constants.writer_pages_per_s,
    )


def idle(constants: Constants, workers: int, lanes: int) -> tuple[float, float]:
    """(asked a second, Redis cores) of workers that serve `lanes` lanes without work."""
    if lanes == 1:
        return workers * constants.idle_asked_per_s, workers * constants.idle_us_per_s / 1e6
    return workers * lanes * constants.lane_asked_per_s, workers * lanes * constants.lane_us_per_s / 1e6


LANES = [(workers, lanes) for workers in (100, 1_000) for lanes in (1, 8, 100)]
FLEETS = [(workers, rate) for workers in (100, 1_000) for rate in (1.0, 10.0, 80.0)]
"""Workers and pages/s of each: two polite ones, and one that a site answers within 200 ms, 16 at a time."""


def markdown(document: dict[str, Any]) -> str:
    """The tables of docs/scaling.md, from the JSON document of `bench scale`."""
    constants = Constants(**document["constants"])
    lines = ["| constant | value |", "|---|---|"]
    lines += [f"| `{name}` | {value:,.1f} |" for name, value in asdict(constants).items()]
    names = [entry.name for entry in fields(Fleet)]
    lines += ["", "| " + " | ".join(names).replace("_", " ") + " |", "|---" * len(names) + "|"]
    for workers, rate in FLEETS:
        values = asdict(fleet(constants, workers, rate)).values()
        lines.append("| " + " | ".join(f"{v:,}" if isinstance(v, int) else f"{v:,.3g}" for v in values) + " |")
    lines += ["", "| workers | lanes of each | asked a second | redis cores |", "|---|---|---|---|"]
    for workers, lanes in LANES:
        asked, cores = idle(constants, workers, lanes)
        lines.append(f"| {workers:,} | {lanes} | {asked:,.0f} | {cores:,.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(json.loads((FOLDER / "scale.json").read_text())))
