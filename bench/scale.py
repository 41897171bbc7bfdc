"""Scale: replicas on a slow site, what one Redis carries, and what a fleet of 100 and 1,000 workers would ask of it.

Replicas are the comment collector itself. The site answers after 100 to 300 ms, so that neither this machine nor Redis
is the limit. What one Redis carries is measured with clients that say what workers say and download nothing.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from bench.crew import Terms
from bench.fleet_model import FLEETS, Constants, fitted, fleet
from bench.plots import Plot
from bench.redis_server import redis_server
from bench.report import Claim, Report
from bench.scaling_run import IdleRun, ScalingRun, idle_run, own_us_per_s, scaling_run
from bench.shard import ShardRun, shard_run
from bench.slow_site import SlowSite, slow_site
from bench.writer_run import WriterRun, writer_run

LATENCY_MS = 200.0
QUIET_GROUP, QUIET_PAUSE_S = 2, 0.02
"""Trips as those of a few replicas on a slow site: does a Redis with little to do spend more on each?"""
GROUP = 16
"""Pages of a trip for the claim, and for what an append-only file costs: about what one busy worker's trips carry."""


@dataclass(frozen=True, slots=True)
class Size:
    """crews: (replicas, partitions), the first one replica; forum: the demo forum's options; rounds of the crews;
    idle: partitions of replicas without work, of which there are `idlers`; clients of one Redis, groups: pages of a
    trip, fsyncs: of its append-only file. For each kind of run: seconds before anything is measured, and seconds
    measured."""

    crews: tuple[tuple[int, int], ...]
    forum: tuple[str, ...]
    rounds: int
    crew_s: tuple[float, float]
    idle: tuple[int, ...]
    idlers: int
    idle_s: tuple[float, float]
    clients: int
    groups: tuple[int, ...]
    fsyncs: tuple[str, ...]
    shard_s: tuple[float, float]
    writer_s: tuple[float, float]


FULL = Size(
    crews=((1, 1), (2, 1), (4, 1), (4, 8)),
    forum=("--forums", "40", "--mean-comments", "55"),
    rounds=2,
    crew_s=(2.0, 8.0),
    idle=(1, 8),
    idlers=4,
    idle_s=(5.0, 13.0),
    clients=3,
    groups=(1, 2, 4, GROUP, 64),
    fsyncs=("everysec", "always"),
    shard_s=(1.0, 4.0),
    writer_s=(4.0, 6.0),
)
SHORT = Size(
    crews=((1, 1), (2, 1)),
    forum=("--forums", "10", "--mean-comments", "55"),
    rounds=1,
    crew_s=(0.5, 1.0),
    idle=(1,),
    idlers=2,
    idle_s=(0.5, 1.0),
    clients=1,
    groups=(1, GROUP),
    fsyncs=("everysec",),
    shard_s=(0.2, 0.5),
    writer_s=(0.5, 1.0),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench scale`."""
    parser.add_argument("--rounds", type=int, help=f"of the replicas, default {FULL.rounds}")
    parser.add_argument("--concurrency", type=int, default=16, help="downloads at a time of one replica, default 16")


def measure(options: argparse.Namespace) -> Report:
    """Replicas in turn, round after round; then idle ones; then one Redis under load."""
    size = SHORT if options.short else FULL
    with redis_server() as port, slow_site(*size.forum) as site:
        url = f"redis://127.0.0.1:{port}/0"
        crews = _crews(size, options.rounds or size.rounds, url, site, options.concurrency)
        own_us = own_us_per_s(url, size.idle_s[1])
        idle = [idle_run(size.idlers, url, site, Terms(partitions=p), *size.idle_s) for p in size.idle]
    shards = [shard_run(size.clients, group, "no", *size.shard_s) for group in size.groups]
    quiet = shard_run(size.clients, QUIET_GROUP, "no", *size.shard_s, pause_s=QUIET_PAUSE_S)
    shards += [shard_run(size.clients, GROUP, fsync, *size.shard_s) for fsync in size.fsyncs]
    writer = writer_run(size.clients, *size.writer_s)
    constants = _constants(crews[0], own_us, idle, size.idlers, shards, writer)
    figures = {
        "latency_ms": LATENCY_MS,
        "concurrency": options.concurrency,
        "replicas": [asdict(run) for run in crews],
        "idle": [asdict(run) for run in idle],
        "shard": [asdict(run) for run in shards],
        "quiet": asdict(quiet),
        "writer": asdict(writer),
        "constants": asdict(constants),
        "fleets": [asdict(fleet(constants, workers, rate)) for workers, rate in FLEETS],
    }
    rows = [_crew_row(run, crews[0].pages_per_s) for run in crews] + [_shard_row(run) for run in [*shards, quiet]]
    return Report("scale", TITLES, rows, figures, _claims(crews, shards), _plots(crews, shards))


def _crews(size: Size, rounds: int, url: str, site: SlowSite, concurrency: int) -> list[ScalingRun]:
    """The median run of each crew; odd rounds backwards."""
    posts = site.posts()
    site.slow_down(LATENCY_MS)
    runs: list[ScalingRun] = []
    for number in range(rounds):
        for replicas, partitions in reversed(size.crews) if number % 2 else size.crews:
            runs.append(scaling_run(replicas, url, site, posts, Terms(concurrency, partitions), *size.crew_s))
    return [_median([run for run in runs if (run.replicas, run.partitions) == crew]) for crew in size.crews]


def _median(runs: Sequence[ScalingRun]) -> ScalingRun:
    """Figure by figure; but a page downloaded twice in one round is not made good by the others."""
    figures = {f.name: statistics.median(getattr(run, f.name) for run in runs) for f in fields(ScalingRun)}
    whole = {"replicas": runs[0].replicas, "partitions": runs[0].partitions, "twice": sum(run.twice for run in runs)}
    return ScalingRun(**{**figures, **whole})


def _constants(
    busy: ScalingRun,
    own_us: float,
    idle: Sequence[IdleRun],
    idlers: int,
    shards: Sequence[ShardRun],
    writer: WriterRun,
) -> Constants:
    in_memory = [run for run in shards if run.fsync == "no"]
    durable = next(run for run in shards if run.fsync == "everysec")
    page_us, trip_us = fitted([(run.pages_per_trip, run.redis_us_per_page) for run in in_memory])
    return Constants(
        page_us=page_us,
        trip_us=trip_us,
        file_us=durable.redis_us_per_page - next(r.redis_us_per_page for r in in_memory if r.group == durable.group),
        writer_us=writer.redis_us_per_page,
        idle_asked_per_s=idle[0].asked_per_s,
        own_us_per_s=own_us,
        idle_us_per_s=idle[0].redis_us_per_s - own_us / idlers,
        idle_bytes_per_s=idle[0].bytes_per_s,
        lane_asked_per_s=idle[-1].asked_per_s / idle[-1].partitions,
        lane_us_per_s=(idle[-1].redis_us_per_s - own_us / idlers) / idle[-1].partitions,
        bytes_per_page=busy.bytes_in_per_page + busy.bytes_out_per_page + writer.bytes_per_page,
        connections=idle[0].connections,
        connection_bytes=idle[0].bytes_of_connections,
        waiting_bytes=writer.waiting_bytes_per_page,
        disk_bytes=durable.disk_bytes_per_page,
        writer_pages_per_s=writer.pages_per_s,
    )


TITLES = ("", "pages/s", "x", "Redis us/page", "Redis busy", "asked/page", "calls/page", "evenness", "twice")


def _crew_row(run: ScalingRun, alone: float) -> list[str]:
    return [
        f"{run.replicas} replicas" + (f", {run.partitions} partitions" if run.partitions > 1 else ""),
        f"{run.pages_per_s:,.0f}",
        f"{run.pages_per_s / alone:.2f}",
        f"{run.redis_us_per_page:.0f}",
        f"{run.redis_us_per_page * run.pages_per_s / 1e6:.0%}",
        f"{run.asked_per_page:.2f}",
        f"{run.calls_per_page:.2f}",
        f"{run.fairness:.2f}",
        f"{run.twice}",
    ]


def _shard_row(run: ShardRun) -> list[str]:
    return [
        f"{run.pages_per_trip:.1f} pages a trip"
        + ("" if run.fsync == "no" else f", fsync {run.fsync}")
        + (", few trips" if run.pause_s else ""),
        f"{run.pages_per_s:,.0f}",
        "-",
        f"{run.redis_us_per_page:.0f}",
        f"{run.busy:.0%}",
        "-",
        f"{1 / run.pages_per_trip:.2f}",
        "-",
        "-",
    ]


def _claims(crews: Sequence[ScalingRun], shards: Sequence[ShardRun]) -> list[Claim]:
    group = next(run for run in shards if run.group == GROUP and run.fsync == "no")
    most = max((run for run in crews if run.partitions == 1), key=lambda run: run.replicas)
    return [
        Claim(f"Redis CPU per page, {GROUP} pages a trip", group.redis_us_per_page, 80, "us", at_most=True),
        Claim(
            f"{most.replicas} replicas over one, slow site",
            most.pages_per_s / crews[0].pages_per_s,
            0.9 * most.replicas,
            "x",
        ),
        Claim("least pages of a replica over most", min(run.fairness for run in crews), 0.9),
        Claim("pages downloaded twice", sum(run.twice for run in crews), 0, at_most=True),
    ]


def _plots(crews: Sequence[ScalingRun], shards: Sequence[ShardRun]) -> list[Plot]:
    lone = [run for run in crews if run.partitions == 1]
    alone = lone[0].pages_per_s
    memory = [run for run in shards if run.fsync == "no"]
    return [
        Plot(
            "scale-replicas",
            f"Replicas on a site that answers after {LATENCY_MS:.0f} ms on average",
            "replicas",
            "pages/s",
            {
                "measured": [(run.replicas, run.pages_per_s) for run in lone],
                "one replica's, times replicas": [(run.replicas, alone * run.replicas) for run in lone],
            },
        ),
        Plot(
            "scale-shard",
            "Redis's CPU for a page, by how many travel together",
            "pages a trip",
            "us/page",
            {"no file": [(run.pages_per_trip, run.redis_us_per_page) for run in memory]},
            log="x",
        ),
        Plot(
            "scale-shard-rate",
            "What one core of Redis carries",
            "pages a trip",
            "pages/s",
            {"no file": [(run.pages_per_trip, run.pages_per_core_s) for run in memory]},
            log="x",
        ),
    ]
