"""The network between the workers and Redis fails in every way we know: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.oracle import assert_whole, downloaded_twice
from chaos.proxy import Proxy
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.store.stage import StageStore
from waiting import wait_for

SEED = int(os.environ.get("CHAOS_SEED", "20261120"))
CONCURRENCY = 8
SMALL = ["--forums", "3", "--pages-per-forum", "3", "--posts-per-page", "10"]
SLOW = ["--latency-ms", "150", "--jitter-ms", "80"]


@contextmanager
def behind_proxy(folder: Path, forum: list[str], **settings: Any) -> Iterator[tuple[Pipeline, Proxy]]:
    """A pipeline whose services reach Redis through a proxy; what the test asks of Redis goes directly."""
    settings.setdefault("concurrency", CONCURRENCY)
    tell(f"seed {SEED}: CHAOS_SEED={SEED} does it again")
    with (
        pipeline(folder, forum=forum, **settings) as rig,
        Proxy(rig.redis.port, seed=SEED, names=_verbs(rig)) as proxy,
    ):
        rig.fleet.environment["THREADMILL_REDIS_URL"] = proxy.url
        try:
            yield rig, proxy
        finally:
            tell(
                f"proxy: {proxy.accepted} connections, {proxy.resets} reset, dropped {dict(sorted(proxy.hit.items()))}"
            )
            proxy.calm()
            rig.fleet.stop()


def start(rig: Pipeline, replicas: int = 1, forums: int = 10) -> str:
    """Start the fleet and a crawl of all forums; answers the job, once every stage is at work."""
    rig.start()
    for stage in STAGES:
        rig.scale(stage, replicas)
    job = rig.submit("list", [str(n) for n in range(1, forums + 1)]).job
    wait_for(lambda: rig.books("comment")["done"] > 10, 60, what="the crawl to be under way")
    return job


def nobody_left(rig: Pipeline) -> None:
    """No process ended by itself."""
    deaths = rig.fleet.tend()
    assert not deaths, deaths
    assert not rig.fleet.restarts


def drained(rig: Pipeline, job: str, seconds: float = 240) -> int:
    """Wait for the end and ask the oracle; answers how many downloads were one too many."""
    began = time.monotonic()
    rig.wait_until_done(job, seconds)
    settled = time.monotonic() - began
    assert_whole(rig, job)
    nobody_left(rig)
    twice = downloaded_twice(rig)
    done = sum(rig.job(job).done.values())
    tell(f"whole: {done} pages done, {twice} downloaded again, {settled:.1f} s from the last fault to the end")
    return twice


def test_a_bad_network_for_some_seconds(tmp_path: Path) -> None:
    # Given a crawl with leases of a second, its bytes a little late
    dice = random.Random(SEED)
    with behind_proxy(tmp_path, [*SMALL, *SLOW], lease_ttl_ms=1000) as (rig, proxy):
        proxy.latency_ms = 5
        job = start(rig, forums=3)
        # When requests and replies are dropped, connections are reset, and all bytes vanish for longer than a lease
        for _ in range(6):
            drop(proxy, dice)
        proxy.reset()
        proxy.blackhole()
        time.sleep(2)
        proxy.heal()
        proxy.slices = True
        # Then everything is done once, without a restart
        drained(rig, job, 60)


@pytest.mark.chaos
@pytest.mark.parametrize("how", ["refuse", "blackhole"])
@pytest.mark.parametrize("ttl_ms", [1000, 2000])
def test_redis_out_of_reach_for_longer_than_every_lease(tmp_path: Path, how: str, ttl_ms: int) -> None:
    # Given two replicas of each stage, all at work
    with behind_proxy(tmp_path, SLOW, lease_ttl_ms=ttl_ms) as (rig, proxy):
        job = start(rig, replicas=2)
        # When nobody reaches Redis for six seconds
        getattr(proxy, how)()
        time.sleep(6)
        nobody_left(rig)
        proxy.heal()
        # Then there is no storm of downloads that had been made already
        twice = drained(rig, job)
        assert twice < 2 * CONCURRENCY * 2 * len(STAGES)


@pytest.mark.chaos
@pytest.mark.parametrize("run", range(2))
def test_forty_requests_and_replies_are_lost_during_a_crawl(tmp_path: Path, run: int) -> None:
    # Given a crawl slow enough to last
    dice = random.Random(SEED + run)
    with behind_proxy(tmp_path, ["--latency-ms", "250", "--jitter-ms", "100"], lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig)
        # When forty times what travels is lost, before Redis or after it acted
        for _ in range(40):
            assert not rig.job(job).finished, f"the crawl ended after {proxy.dropped} drops"
            drop(proxy, dice)
        # Then effects happened once
        twice = drained(rig, job)
        assert twice < 2 * CONCURRENCY * len(STAGES)


@pytest.mark.chaos
def test_all_bytes_vanish_for_seven_seconds(tmp_path: Path) -> None:
    # Given a crawl
    with behind_proxy(tmp_path, SLOW, lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig)
        # When connections stay open and nothing passes, for longer than a client waits for a reply
        proxy.blackhole()
        time.sleep(7)
        done = rig.job(job).done
        proxy.heal()
        # Then work goes on soon, by the same processes
        wait_for(lambda: rig.job(job).done != done, 8, what="the crawl to go on")
        drained(rig, job)


@pytest.mark.chaos
def test_connections_are_reset_three_times_a_second(tmp_path: Path) -> None:
    # Given a crawl
    with behind_proxy(tmp_path, SLOW, lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig)
        # When every connection is reset every 300 ms, for six seconds
        for _ in range(20):
            proxy.reset()
            time.sleep(0.3)
        # Then everything is done once
        drained(rig, job)


@pytest.mark.chaos
def test_bytes_come_in_small_pieces(tmp_path: Path) -> None:
    # Given a proxy that passes on 1 to 7 bytes at a time, and resets in the middle of replies
    with behind_proxy(tmp_path, [*SMALL, *SLOW], lease_ttl_ms=2000) as (rig, proxy):
        proxy.slices = True
        job = start(rig, forums=3)
        for _ in range(5):
            proxy.reset()
            time.sleep(0.4)
        # When the crawl goes through it as a whole, then no reply is taken for another's
        drained(rig, job)


@pytest.mark.chaos
def test_event_loop_is_on_time_while_redis_is_late(tmp_path: Path) -> None:
    # Given a detail collector that measures its event loop, at work
    lags, path = tmp_path / "lags", os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")])
    with behind_proxy(tmp_path, SLOW, lease_ttl_ms=8000) as (rig, proxy):
        rig.fleet.environment |= {"LAG_FILE": str(lags), "PYTHONPATH": path}
        for service in ("chaos.lag", "list_scanner", "comment_collector", "item_writer"):
            rig.fleet.scale(service, 1)
        job = rig.submit("list", [str(n) for n in range(1, 11)]).job
        wait_for(lambda: rig.books("detail")["done"] > 50, 60, what="the crawl to be under way")
        # When Redis answers two seconds late
        began, done = time.monotonic(), rig.books("detail")["done"]
        proxy.latency_ms = 1000
        time.sleep(15)
        ended, worked = time.monotonic(), rig.books("detail")["done"] - done
        proxy.latency_ms = 0
        drained(rig, job)
        rig.fleet.stop()
        # Then the loop never waited for it
        lines = [tuple(map(float, line.split())) for line in lags.read_text().splitlines()]
        late = sorted(lag for at, lag in lines if began <= at <= ended)
        p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
        tell(f"event loop: {len(late)} samples, p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {late[-1]:.2f} ms")
        assert worked > 0
        assert len(late) > 800
        assert p99 < 50


@pytest.mark.chaos
@pytest.mark.parametrize("how", ["refuse", "blackhole"])
@pytest.mark.parametrize("seconds", [20, 60])
def test_nobody_exits_during_an_outage(tmp_path: Path, how: str, seconds: float) -> None:
    # Given a crawl
    with behind_proxy(tmp_path, SLOW, lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig)
        # When Redis is out of reach for a long time
        getattr(proxy, how)()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            nobody_left(rig)
            time.sleep(0.5)
        proxy.heal()
        # Then everybody is still there and finishes the work
        drained(rig, job)


def drop(proxy: Proxy, dice: random.Random) -> None:
    """Lose a request or a reply, at a random moment."""
    time.sleep(dice.uniform(0, 0.15))
    before = proxy.dropped
    dice.choice([proxy.drop_request, proxy.drop_reply])()
    wait_for(lambda: proxy.dropped > before, 10, every=0.002, what="something to drop")


def _verbs(rig: Pipeline) -> dict[str, str]:
    stores = [StageStore(rig.lane, stage) for stage in STAGES.values()]
    return {script.sha: name for store in stores for name, script in store._scripts.items()}


def tell(text: str) -> None:
    """A figure of the report; pytest shows it with a failure, and always with `-rP`."""
    print(text)  # noqa: T201
