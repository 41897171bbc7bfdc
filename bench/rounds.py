"""The runs of the throughput benchmark: every side at every distance of Redis, round after round."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from redis import Redis

from bench.child import ROOT, server
from bench.forum_choice import forum
from bench.json_redis import Server
from bench.post_ids import post_ids
from bench.progress import Progress, say
from bench.run import Run
from bench.sides import SIDES, Side
from bench.summary import Measured
from threadmill.ops.embedded import free_port

_GRACE_S = 60.0  # for starting and stopping a side, beside its measured time


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    pages: as many there are for each run; a side that wants more fails. rounds: how often every side is run. The
    others are a run's bounds, see `Run`.
    """

    pages: int
    seconds: float
    least_pages: int
    longest_seconds: float
    warmup_pages: int
    warmup_seconds: float
    rounds: int

    def but(self, *, rounds: int | None, seconds: float | None) -> "Size":
        """The same with what is given replaced."""
        seconds = seconds or self.seconds
        longest = max(self.longest_seconds, seconds)
        return replace(self, rounds=rounds or self.rounds, seconds=seconds, longest_seconds=longest)


class Rounds:
    """The forum, the Redis and the proxies that all runs of one measurement share."""

    def __init__(self, stack: ExitStack, redis_server: Server, site: str, size: Size, delays: Sequence[float]) -> None:
        self._size = size
        self._redis_server = redis_server
        self._port = free_port()
        site_url = stack.enter_context(forum(site))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmill-bench-"))
        ids = Path(folder, "post_ids")
        ids.write_text("\n".join(post_ids(site_url, size.pages + size.warmup_pages)))
        self._runs: dict[float, Run] = {}
        for delay in delays:
            port = self._port
            if delay:
                port = stack.enter_context(server("bench.proxy", "--to", str(port), "--delay-ms", str(delay)))
            self._runs[delay] = Run(
                site_url=site_url,
                redis_url=f"redis://127.0.0.1:{port}/0",
                near_redis_url=f"redis://127.0.0.1:{self._port}/0",
                post_ids_file=str(ids),
                pages=sys.maxsize,
                warmup_pages=size.warmup_pages,
                warmup_seconds=size.warmup_seconds,
                seconds=size.seconds,
                least_pages=size.least_pages,
                longest_seconds=size.longest_seconds,
            )

    def run(self, sides: Sequence[Side]) -> list[list[Measured]]:
        """What was measured, by round; odd rounds go backwards."""
        turns: list[tuple[Side, float | None]] = []
        for side in sides:
            turns += [(side, delay) for delay in self._runs] if side.uses_redis else [(side, None)]
        self._warm_site()
        progress = Progress(len(turns) * self._size.rounds, "run")
        return [
            [self._turn(progress, side, delay) for side, delay in (reversed(turns) if number % 2 else turns)]
            for number in range(self._size.rounds)
        ]

    def _warm_site(self) -> None:
        """Has the fastest side visit all pages it will need: the site renders a page once and remembers it."""
        say("The site renders its pages …")
        run = replace(next(iter(self._runs.values())), pages=self._size.pages, seconds=60.0)
        self._measure(SIDES["aiohttp"], run)

    def _turn(self, progress: Progress, side: Side, delay: float | None) -> Measured:
        away = "" if delay is None else f", Redis {delay:g} ms away"
        progress.begin(f"{side.name}{away}")
        run = self._runs[delay] if delay is not None else next(iter(self._runs.values()))
        measured: Measured = {"side": side.name, "redis_delay_ms": delay, **self._measure(side, run)}
        progress.end(f"{measured['pages_per_s']:,.1f} pages/s over {measured['pages']:,} pages")
        return measured

    def _measure(self, side: Side, run: Run) -> Measured:
        """One run with an empty Redis. Raises RuntimeError if the side failed or its items are not in Redis."""
        with self._redis_server.running(self._port), Redis(port=self._port) as redis:
            process = subprocess.run(
                side.command(run),
                cwd=ROOT,
                check=False,  # its standard error goes into the message below
                capture_output=True,
                text=True,
                timeout=run.warmup_seconds + max(run.seconds, run.longest_seconds) + _GRACE_S,
            )
            if process.returncode or not process.stdout.strip():
                raise RuntimeError(f"{side.name} failed with code {process.returncode}:\n{process.stderr[-4000:]}")
            measured: Measured = json.loads(process.stdout.splitlines()[-1])
            if side.stored_items and (stored := side.stored_items(redis)) < measured["items_yielded"]:
                raise RuntimeError(f"{side.name} yielded {measured['items_yielded']} items, {stored} are in Redis")
            peak: int = redis.info("memory")["used_memory_peak"]
            return {**measured, "redis_peak_mb": round(peak / 2**20, 1)}
