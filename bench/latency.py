"""How soon an idle stage begins what it is asked for, and what idle workers send to Redis.

The services are processes as they are deployed; a site of the benchmark notes on the wire when each request arrives.
Three things are measured:

- submitted: one post at a time after a random pause, from the call that submits it until its request is at the site.
  Submitter and worker are equally far from Redis. Threadmill's sides take turns, submission by submission.
- listed: from the moment the site has sent a list page until the requests of its 20 posts are there, through
  `list_scanner` and `detail_collector`. A worker downloads 16 at a time. scrapy-redis does both in one process.
- idle: every command that arrives at a Redis, over all clients, while nothing is asked. A hundred workers send a
  hundred times what one of a fleet does; `--idle-workers 100` runs them.

scrapy-redis waits for Scrapy's heartbeat of 5 s, so there are several spiders with keys of their own, asked at the same
time; its waits are a hundred times what they could do to each other. They and the idle fleets are measured together.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from bench.idle_fleet import Idling, shapes, start_fleets, watch_idling
from bench.latency_sides import IdleSide, ScrapyRedisSide, ThreadmillSide, pause
from bench.plots import Plot
from bench.report import Claim, Report

MEDIAN_MS, P95_MS, COMMANDS_PER_S = 50.0, 200.0, 2.0
PEER = "scrapy-redis"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    sides: distance of Redis in ms, and lanes, of each of Threadmill's; with `submissions` and `lists` each.
    spiders: of the peer at each of the distances `away_ms`, each `asked` so often.
    idle_workers: of the large idle fleet; `idle_lanes` are those of the single idle workers.
    """

    sides: Sequence[tuple[float, int]]
    submissions: int
    lists: int
    away_ms: Sequence[float]
    spiders: int
    asked: int
    idle_workers: int
    idle_lanes: Sequence[int]
    idle_seconds: float


FULL = Size(((0.0, 1), (2.0, 1), (0.0, 4)), 200, 40, (0.0, 2.0), 10, 12, 24, (1, 4, 16), 40.0)
SHORT = Size(((2.0, 1), (0.0, 4)), 10, 3, (2.0,), 1, 1, 2, (4,), 3.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench latency`."""
    parser.add_argument("--seed", type=int, default=4, help="of the pauses")
    parser.add_argument("--submissions", type=int, help=f"a side, default {FULL.submissions}")
    parser.add_argument("--idle-workers", type=int, help=f"default {FULL.idle_workers}")


def measure(options: argparse.Namespace) -> Report:
    """Threadmill's sides, then the peer and the idle fleets."""
    size = SHORT if options.short else FULL
    dice = random.Random(options.seed)
    sides: dict[str, IdleSide] = {}
    sides |= _threadmill(size, options.submissions or size.submissions, dice)
    idling, peers = _idle(size, options.idle_workers or size.idle_workers, dice)
    sides |= peers
    return _report(sides, idling)


def _threadmill(size: Size, submissions: int, dice: random.Random) -> dict[str, ThreadmillSide]:
    with ExitStack() as stack:
        sides = {
            _name(away_ms, lanes): ThreadmillSide(stack, away_ms, lanes, ("list", "detail"))
            for away_ms, lanes in size.sides
        }
        for side in sides.values():
            side.site.start()
        for side in sides.values():
            side.warm_up()
        for _ in range(submissions):
            for side in sides.values():
                pause(dice)
                side.ask_for_post()
        _tell(f"{submissions} submissions a side")
        for _ in range(size.lists):
            for side in sides.values():
                pause(dice)
                side.ask_for_list()
        return sides


def _name(away_ms: float, lanes: int) -> str:
    return f"Threadmill, Redis {away_ms:g} ms" + (f", {lanes} lanes" if lanes > 1 else "")


def _idle(size: Size, workers: int, dice: random.Random) -> tuple[list[Idling], dict[str, ScrapyRedisSide]]:
    with ExitStack() as stack:
        started = start_fleets(stack, shapes(workers, size.idle_lanes))
        sides = [(away_ms, ScrapyRedisSide(stack, away_ms, size.spiders)) for away_ms in size.away_ms]
        peers = {f"{PEER}, Redis {away_ms:g} ms": side for away_ms, side in sides}
        for _, _, fleet in started:
            fleet.wait_until_idle()
        for side in peers.values():
            side.site.start()
        for side in peers.values():
            side.wait_until_idle()
        _tell(f"{len(started)} idle fleets and {len(peers) * size.spiders} spiders are there")
        fleets = [(shape.name, shape.workers, port) for shape, port, _ in started]
        fleets.append((f"{PEER}, {size.spiders} idle", size.spiders, sides[0][1].near_port))
        idling = watch_idling(fleets, size.idle_seconds)
        with ThreadPoolExecutor(len(peers)) as pool:
            seeds = [dice.random() for _ in peers]
            list(pool.map(lambda side, seed: side.ask(size.asked, random.Random(seed)), peers.values(), seeds))
        return idling, peers


def _report(sides: dict[str, IdleSide], idling: list[Idling]) -> Report:
    rows = [[f"submitted: {name}", *side.submitted.cells(), "-"] for name, side in sides.items()]
    rows += [[f"listed: {name}", *side.listed.cells(), "-"] for name, side in sides.items()]
    rows += [[f"idle: {fleet.name}", *"-----", f"{fleet.per_worker:.2f}"] for fleet in idling]
    figures = {
        "submitted": {name: side.submitted.figures() for name, side in sides.items()},
        "listed": {name: side.listed.figures() for name, side in sides.items()},
        "idle": {fleet.name: fleet.figures() for fleet in idling},
    }
    curves = {name: side.submitted.curve() for name, side in sides.items()}
    lists = {name: side.listed.curve() for name, side in sides.items()}
    return Report(
        "latency",
        ("", "n", "median ms", "p95", "p99", "max", "commands/s a worker"),
        rows,
        figures,
        _claims(sides, idling),
        (
            Plot("latency", "An idle stage: submitted to request on the wire", "ms", "% begun", curves, log="x"),
            Plot("latency-list", "List page sent to its posts' requests on the wire", "ms", "% begun", lists, log="x"),
        ),
    )


def _claims(sides: dict[str, IdleSide], idling: list[Idling]) -> list[Claim]:
    claims = []
    for name, side in sides.items():
        if not name.startswith(PEER):
            waits = side.submitted
            claims.append(Claim(f"{name}: submit to wire, median", waits.median, MEDIAN_MS, "ms", at_most=True))
            claims.append(Claim(f"{name}: submit to wire, p95", waits.quantile(0.95), P95_MS, "ms", at_most=True))
    for fleet in idling:
        if not fleet.name.startswith(PEER):
            text = f"{fleet.name}: commands a worker"
            claims.append(Claim(text, fleet.per_worker, COMMANDS_PER_S, "/s", at_most=True))
    return claims


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
