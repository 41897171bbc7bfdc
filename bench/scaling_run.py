"""Replicas of one stage on a slow forum, so that the forum is the limit and not this machine."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from redis import Redis

from bench.crew import Terms, crew
from bench.server_use import ServerUse
from bench.slow_site import Post, SlowSite
from threadmill.store.connection import connect


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """Some replicas on one forum.

    pages_per_s: over the seconds measured, after the warm-up. asked_per_page: what workers asked of Redis, each
    command of a pipeline by itself; calls_per_page: round trips, over the replicas' whole life. fairness: pages of the
    replica that did fewest over pages of the one that did most. twice: downloads of a page that was downloaded before.
    """

    replicas: int
    partitions: int
    pages: int
    pages_per_s: float
    redis_us_per_page: float
    asked_per_page: float
    calls_per_page: float
    bytes_in_per_page: float
    bytes_out_per_page: float
    worker_cpu_ms_per_page: float
    fairness: float
    twice: int


@dataclass(frozen=True, slots=True)
class IdleRun:
    """Replicas without work, each figure of one replica, with its share of what Redis does by itself."""

    partitions: int
    asked_per_s: float
    redis_us_per_s: float
    bytes_per_s: float
    connections: float
    bytes_of_connections: float


def scaling_run(
    replicas: int, redis_url: str, site: SlowSite, posts: Sequence[Post], terms: Terms, warm_up_s: float, seconds: float
) -> ScalingRun:
    """Collects the posts' comments for `seconds` after the warm-up.

    Raises `RuntimeError` if the posts were too few, or anything failed.
    """
    site.reset()
    with crew(replicas, redis_url, site.url, terms) as those:
        those.submit([post.id for post in posts])
        time.sleep(warm_up_s)
        done, before = those.books.done, ServerUse.of(those.client)
        time.sleep(seconds)
        used = ServerUse.of(those.client) - before
        books = those.books
        if not books.tasks:
            raise RuntimeError(f"{len(posts)} posts were too few for {replicas} replicas and {seconds:g} s")
        those.check()
    pages = books.done - done
    parsed = [tally.pages for tally in those.tallies]
    run = ScalingRun(
        replicas,
        terms.partitions,
        pages,
        pages / used.wall_s,
        used.cpu_us / pages,
        used.asked / pages,
        sum(tally.redis_calls for tally in those.tallies) / sum(parsed),
        used.bytes_in / pages,
        used.bytes_out / pages,
        sum(tally.cpu_s for tally in those.tallies) / sum(parsed) * 1000,
        min(parsed) / max(parsed),
        site.downloads().twice,
    )
    print(run, file=sys.stderr, flush=True)
    return run


def idle_run(replicas: int, redis_url: str, site: SlowSite, terms: Terms, settle_s: float, seconds: float) -> IdleRun:
    """Replicas that were never given anything to do, some seconds after they have looked for it."""
    with crew(replicas, redis_url, site.url, terms) as those:
        time.sleep(settle_s)
        before = ServerUse.of(those.client)
        time.sleep(seconds)
        used = ServerUse.of(those.client) - before
        connections = _connections(those.client)
        those.check()
    run = IdleRun(
        terms.partitions,
        used.asked / used.wall_s / replicas,
        used.cpu_us / used.wall_s / replicas,
        (used.bytes_in + used.bytes_out) / used.wall_s / replicas,
        len(connections) / replicas,
        sum(connections) / replicas,
    )
    print(run, file=sys.stderr, flush=True)
    return run


def own_us_per_s(redis_url: str, seconds: float) -> float:
    """CPU that a Redis nobody uses spends by itself, in us a second."""
    with connect(redis_url) as client:
        before = ServerUse.of(client)
        time.sleep(seconds)
        used = ServerUse.of(client) - before
    return used.cpu_us / used.wall_s


def _connections(ours: Redis) -> list[int]:
    """Bytes that the server spends on each connection but ours."""
    mine = int(ours.client_id())
    return [int(one["tot-mem"]) for one in ours.client_list() if int(one["id"]) != mine]
