"""The model of a fleet: what N workers ask of Redis, from the constants that `bench scale` measures.

`python -m bench.fleet_model` writes the tables of docs/scaling.md anew from data/bench/scale.json.
"""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from bench.child import ROOT
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


def tables(document: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/scaling.md by name, as Markdown, from the JSON document of `bench scale`."""
    constants = Constants(**document["constants"])
    alone = document["replicas"][0]["pages_per_s"]
    return {
        "replicas": _table(
            "replicas|partitions|pages/s|over one|Redis us/page|asked/page|calls/page|least over most|downloaded twice",
            (
                [
                    run["replicas"],
                    run["partitions"],
                    run["pages_per_s"],
                    run["pages_per_s"] / alone,
                    run["redis_us_per_page"],
                    run["asked_per_page"],
                    run["calls_per_page"],
                    run["fairness"],
                    run["twice"],
                ]
                for run in document["replicas"]
            ),
        ),
        "shard": _table(
            "pages a trip|append-only file|pages/s|Redis busy|Redis us/page|by the line|pages/s of a core",
            (
                [
                    run["pages_per_trip"],
                    run["fsync"],
                    run["pages_per_s"],
                    f"{run['busy']:.0%}",
                    run["redis_us_per_page"],
                    constants.page_us
                    + constants.file_us * (run["fsync"] == "everysec")
                    + constants.trip_us / run["pages_per_trip"],
                    run["pages_per_core_s"],
                ]
                for run in [*document["shard"], document["quiet"]]
            ),
        ),
        "constants": _table("constant|value", ([f"`{name}`", value] for name, value in asdict(constants).items())),
        "fleets": _table(
            "|".join(entry.name.replace("_", " ") for entry in fields(Fleet)),
            (list(asdict(fleet(constants, workers, rate)).values()) for workers, rate in FLEETS),
        ),
        "lanes": _table(
            "workers|lanes of each|asked a second|Redis cores",
            ([workers, lanes, *idle(constants, workers, lanes)] for workers, lanes in LANES),
        ),
    }


def _table(titles: str, rows: Iterable[Sequence[float | str]]) -> str:
    columns = titles.split("|")
    lines = [columns, ["---"] * len(columns), *([_shown(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: float | str) -> str:
    """Three figures, and thousands apart."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return value if isinstance(value, str) else f"{value:,}"


def filled(text: str, document: dict[str, Any]) -> str:
    """The page with each table between its two comments replaced; raises `ValueError` if one has no place."""
    for name, table in tables(document).items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"there is no place for the table {name!r}")
        text = before + begin + table + end + after
    return text


if __name__ == "__main__":
    page = ROOT / "docs" / "scaling.md"
    page.write_text(filled(page.read_text(), json.loads((FOLDER / "scale.json").read_text())))
