"""Pages per second of one worker process: each side in turn, Redis at several distances, medians and ratios.

Every round runs every side once, the next round in the opposite order, so that a machine that grows slower or
faster treats all alike. At 0 ms a side speaks to Redis directly; at more, through `bench.proxy`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from redis import Redis

from bench.child import ROOT, server
from bench.forum_choice import forum
from bench.post_ids import post_ids
from bench.redis_server import redis_server
from bench.report import Report
from bench.run import Run
from bench.sides import SIDES, NotBuiltYetError, Side
from bench.summary import TITLES, Measured, cells, summarise

_GRACE_S = 60.0  # for starting and stopping a side, beside its measured time


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: pages timed and before that, seconds at most for either, rounds."""

    pages: int
    warmup_pages: int
    seconds: float
    warmup_seconds: float
    rounds: int


FULL = Size(pages=3_000, warmup_pages=200, seconds=20.0, warmup_seconds=5.0, rounds=5)
SHORT = Size(pages=500, warmup_pages=100, seconds=3.0, warmup_seconds=1.0, rounds=1)  # under 60 s, for CI


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench throughput`."""
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")
    parser.add_argument("--pages", type=int, help=f"timed in each run, default {FULL.pages}")
    parser.add_argument("--delays", type=_numbers, help="of a Redis round trip in ms, default 0,2,20")
    parser.add_argument("--sides", type=_names, help=f"of {', '.join(SIDES)}; default all that are built")
    parser.add_argument("--site", choices=("auto", "bench", "demo"), default="auto", help="auto: not the bottleneck")


def measure(options: argparse.Namespace) -> Report:
    """Runs every side in turn, round after round."""
    base = SHORT if options.short else FULL
    size = Size(
        options.pages or base.pages,
        base.warmup_pages,
        base.seconds,
        base.warmup_seconds,
        options.rounds or base.rounds,
    )
    delays = options.delays or ([0.0, 2.0] if options.short else [0.0, 2.0, 20.0])
    with ExitStack() as stack:
        bench = Bench(stack, options.site, size, delays)
        try:
            sides = bench.built(options.sides)
        except NotBuiltYetError as error:
            raise SystemExit(str(error)) from None
        rounds = [bench.round(number, sides) for number in range(size.rounds)]
    rows = summarise(rounds)
    figures = {"runs": list(chain.from_iterable(rounds)), "summary": [asdict(row) for row in rows]}
    return Report("throughput", TITLES, [cells(row) for row in rows], figures)


class Bench:
    """The forum, the Redis and the proxies that all runs of one measurement share."""

    def __init__(self, stack: ExitStack, site: str, size: Size, delays: Sequence[float]) -> None:
        self._size = size
        site_url = stack.enter_context(forum(site))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmill-bench-"))
        ids = Path(folder, "post_ids")
        ids.write_text("\n".join(post_ids(site_url, size.pages + size.warmup_pages)))
        near = stack.enter_context(redis_server())
        self._redis = stack.enter_context(Redis(port=near))
        self._runs: dict[float, Run] = {}
        for delay in delays:
            port = near
            if delay:
                port = stack.enter_context(server("bench.proxy", "--to", str(near), "--delay-ms", str(delay)))
            self._runs[delay] = Run(
                site_url=site_url,
                redis_url=f"redis://127.0.0.1:{port}/0",
                near_redis_url=f"redis://127.0.0.1:{near}/0",
                post_ids_file=str(ids),
                pages=size.pages,
                warmup_pages=size.warmup_pages,
                warmup_seconds=size.warmup_seconds,
                seconds=size.seconds,
            )

    def built(self, names: Sequence[str] | None) -> list[Side]:
        """The sides asked for, or all that can be run. Raises NotBuiltYetError for one asked for by name."""
        some_run = next(iter(self._runs.values()))
        sides = []
        for side in [SIDES[name] for name in names or SIDES]:
            try:
                side.command(some_run)
            except NotBuiltYetError as error:
                if names:
                    raise
                print(f"Left out: {error}", file=sys.stderr)
            else:
                sides.append(side)
        return sides

    def round(self, number: int, sides: Sequence[Side]) -> list[Measured]:
        """Every side once at every distance that matters to it; odd rounds backwards."""
        turns: list[tuple[Side, float | None]] = []
        for side in sides:
            turns += [(side, delay) for delay in self._runs] if side.uses_redis else [(side, None)]
        return [self._measure(side, delay) for side, delay in (reversed(turns) if number % 2 else turns)]

    def _measure(self, side: Side, delay: float | None) -> Measured:
        run = self._runs[delay] if delay is not None else next(iter(self._runs.values()))
        self._redis.flushall()
        process = subprocess.run(
            side.command(run),
            cwd=ROOT,
            check=False,  # its standard error goes into the message below
            capture_output=True,
            text=True,
            timeout=run.seconds + run.warmup_seconds + _GRACE_S,
        )
        if process.returncode or not process.stdout.strip():
            raise RuntimeError(f"{side.name} failed with code {process.returncode}:\n{process.stderr[-4000:]}")
        measured: Measured = {
            "side": side.name,
            "redis_delay_ms": delay,
            **json.loads(process.stdout.splitlines()[-1]),
        }
        if side.stored_items and (stored := side.stored_items(self._redis)) < measured["items_yielded"]:
            raise RuntimeError(f"{side.name} yielded {measured['items_yielded']} items but {stored} are in Redis")
        print(json.dumps(measured), file=sys.stderr, flush=True)
        return measured


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(SIDES):
        raise argparse.ArgumentTypeError(f"no such side: {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
    return names
