"""The sides of the throughput benchmark. A new one is an entry here and a module that runs it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from redis import Redis

from bench.run import Run

BASELINE = "scrapy"
THREADMILL = "threadmill"


@dataclass(frozen=True, slots=True)
class Side:
    """A crawler to be measured.

    name: how the command line and the table call it.
    about: one line for people.
    command: the process that does a run: it fills in its own tasks through `run.near_redis_url`, crawls
    through `run.redis_url`, counts its pages with `bench.meter.Meter`, and prints the meter's report as its
    last line.
    uses_redis: whether the distance of Redis can matter to it; if not, it is run once a round.
    needs_json: whether its Redis must have the JSON commands.
    stored_items: how many items are in Redis after a run. A side that stores fewer than it yielded has
    cheated.
    """

    name: str
    about: str
    command: Callable[[Run], list[str]]
    uses_redis: bool = True
    needs_json: bool = False
    stored_items: Callable[[Redis], int] | None = None


def module(name: str, *flags: str) -> Callable[[Run], list[str]]:
    """How a side's module is started."""
    return lambda run: [sys.executable, "-m", name, run.to_json(), *flags]


def _scrapy_redis_items(redis: Redis) -> int:
    return int(redis.llen("forum:items"))


def _threadmill_items(redis: Redis) -> int:
    return int(redis.hget("{bench.0}:items:stats", "committed") or 0)


def _crawlee_items(redis: Redis) -> int:
    (length,) = redis.execute_command("JSON.ARRLEN", "datasets:default:items", "$")  # type: ignore[no-untyped-call]
    return int(length or 0)


# In the order of a round: those that are compared run soon after one another, before the machine has changed its speed.
SIDES: dict[str, Side] = {
    side.name: side
    for side in (
        Side(
            "aiohttp",
            "a bare aiohttp client with the same parsing, no crawler: the limit",
            module("bench.peers.bare_aiohttp"),
            uses_redis=False,
        ),
        Side(
            "scrapy-redis-stats",
            "the same with its RedisStatsCollector",
            module("bench.peers.scrapy_redis", "--stats"),
            stored_items=_scrapy_redis_items,
        ),
        Side(
            "crawlee",
            "crawlee-python, request queue and dataset in Redis",
            module("bench.peers.crawlee_redis"),
            needs_json=True,
            stored_items=_crawlee_items,
        ),
        Side(
            "scrapy-redis",
            "scheduler, dupefilter and items in Redis",
            module("bench.peers.scrapy_redis"),
            stored_items=_scrapy_redis_items,
        ),
        Side(
            "scrapy-lean",
            "plain Scrapy, lean settings and items batched by hand, in memory",
            module("bench.peers.lean_scrapy"),
            uses_redis=False,
        ),
        Side(
            BASELINE,
            "plain Scrapy, default settings, in memory",
            module("bench.peers.plain_scrapy"),
            uses_redis=False,
        ),
        Side(
            THREADMILL,
            "one detail and comment worker, every guarantee on",
            module("bench.threadmill_side"),
            stored_items=_threadmill_items,
        ),
    )
}
