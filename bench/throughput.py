"""Pages per second of one worker process: each side in turn, Redis at several distances, medians and ratios.

Every round runs every side once, the next round in the opposite order, so that a machine that grows slower or
faster treats all alike. At 0 ms a side speaks to Redis directly; at more, through `bench.proxy`. Every run has
a Redis server of its own, empty but for its tasks.

Ratios are taken within each round, and their median over the rounds is what is claimed. A side is timed for a
few seconds, from callback to callback, after a warm-up; a slow one for longer, until it has pages enough.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain

from bench.json_redis import HOW_TO_GET_ONE, best_server
from bench.plots import Plot
from bench.progress import say
from bench.report import Report
from bench.rounds import Rounds, Size
from bench.sides import SIDES
from bench.summary import TITLES, Row, cells, claims, summarise

FULL = Size(
    pages=24_000, seconds=3.0, least_pages=40, longest_seconds=12.0, warmup_pages=1_000, warmup_seconds=1.0, rounds=4
)
# For CI: whether every side runs, not how fast.
SHORT = Size(
    pages=4_000, seconds=0.5, least_pages=5, longest_seconds=2.0, warmup_pages=100, warmup_seconds=0.3, rounds=1
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench throughput`."""
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")
    parser.add_argument("--seconds", type=float, help=f"timed in each run, default {FULL.seconds:g}")
    parser.add_argument("--delays", type=_numbers, help="of a Redis round trip in ms, default 0,2,20")
    parser.add_argument("--sides", type=_names, help=f"of {', '.join(SIDES)}; default all")
    parser.add_argument(
        "--site", choices=("auto", "bench", "demo"), help="default bench; auto: demo if it is fast enough"
    )


def measure(options: argparse.Namespace) -> Report:
    """Runs every side in turn, round after round."""
    size = (SHORT if options.short else FULL).but(rounds=options.rounds, seconds=options.seconds)
    delays = options.delays or ([0.0, 2.0] if options.short else [0.0, 2.0, 20.0])
    server = best_server()
    say(f"Redis {server.version}, {'with' if server.json else 'without'} JSON: {' '.join(server.command)}")
    sides = [SIDES[name] for name in options.sides or SIDES]
    if not server.json and any(side.needs_json for side in sides):
        if options.sides:
            raise SystemExit(f"crawlee needs a Redis with JSON: {HOW_TO_GET_ONE}")
        say(f"Left out: crawlee, which needs a Redis with JSON: {HOW_TO_GET_ONE}")
        sides = [side for side in sides if not side.needs_json]
    with ExitStack() as stack:
        rounds = Rounds(stack, server, options.site or "bench", size, delays).run(sides)
    rows = summarise(rounds)
    figures = {
        "redis": server.version,
        "sides": {side.name: side.about for side in sides},
        "runs": list(chain.from_iterable(rounds)),
        "summary": [asdict(row) for row in rows],
    }
    return Report(
        "throughput", TITLES, [cells(row) for row in rows], figures, claims(rounds, rows), _plots(rows, delays)
    )


def _plots(rows: Sequence[Row], delays: Sequence[float]) -> list[Plot]:
    """A side that uses no Redis is drawn at every distance, where it is the same."""
    rates: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        at = delays if row.redis_delay_ms is None else [row.redis_delay_ms]
        rates.setdefault(row.side, []).extend((delay, row.pages_per_s) for delay in at)
    bars = {side: [(f"{delay:g} ms", rate) for delay, rate in points] for side, points in rates.items()}
    away = "Redis away (round trip)"
    return [
        Plot("throughput", "One worker process", away, "pages/s (log)", bars, log="y"),
        Plot("throughput-distance", "The price of distance", f"{away}, ms", "pages/s (log)", rates, log="y"),
    ]


def _numbers(text: str) -> list[float]:
    return sorted(float(number) for number in text.split(","))


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(SIDES):
        raise argparse.ArgumentTypeError(f"no such side: {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
    return names
