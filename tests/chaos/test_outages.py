"""Redis is out of reach, silent or slow for a while: nobody exits, work goes on by itself, and there is no storm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.behind_proxy import CONCURRENCY, SLOW, SMALL, behind_proxy, drained, nobody_left, start
from threadmill.model.stages import STAGES
from waiting import wait_for

REPLICAS = 2
Record = Callable[[str, object], None]


@pytest.mark.scenario(12)
@pytest.mark.chaos
@pytest.mark.parametrize(("how", "ttl_ms"), [("refuse", 1000), ("blackhole", 2000)])
def test_redis_out_of_reach_for_longer_than_every_lease(
    tmp_path: Path, how: str, ttl_ms: int, record_property: Record
) -> None:
    # Given two replicas of each stage, all at work
    with behind_proxy(tmp_path, ["--forums", "5", *SLOW], lease_ttl_ms=ttl_ms) as (rig, proxy):
        job = start(rig, replicas=REPLICAS, forums=5)
        # When nobody reaches Redis for longer than every lease, and than a client waits for a reply
        getattr(proxy, how)()
        time.sleep(7)  # the outage itself
        nobody_left(rig)
        done = rig.job(job).done
        assert not rig.job(job).finished
        proxy.heal()
        # Then work goes on soon, and there is no storm of downloads that had been made already
        wait_for(lambda: rig.job(job).done != done, 8, what="the crawl to go on")
        twice = drained(rig, job)
        record_property("downloaded_twice", twice)
        assert twice < 2 * CONCURRENCY * REPLICAS * len(STAGES)


@pytest.mark.scenario(12)
@pytest.mark.chaos
@pytest.mark.parametrize("how", ["refuse", "blackhole"])
def test_nobody_exits_during_an_outage_of_a_minute(tmp_path: Path, how: str, record_property: Record) -> None:
    # Given a crawl
    with behind_proxy(tmp_path, [*SMALL, *SLOW], lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig, forums=3)
        # When Redis is out of reach for a long time
        getattr(proxy, how)()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            nobody_left(rig)
            time.sleep(0.5)  # the outage itself
        assert not rig.job(job).finished
        proxy.heal()
        # Then everybody is still there and finishes the work
        record_property("downloaded_twice", drained(rig, job))


@pytest.mark.scenario(12)
@pytest.mark.chaos
def test_event_loop_is_on_time_while_redis_is_late(tmp_path: Path, record_property: Record) -> None:
    # Given a detail collector that measures its event loop, at work
    lags, path = tmp_path / "lags", os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")])
    with behind_proxy(tmp_path, ["--forums", "5", *SLOW], lease_ttl_ms=8000) as (rig, proxy):
        rig.fleet.environment |= {"LAG_FILE": str(lags), "PYTHONPATH": path}
        for service in ("chaos.lag", "list_scanner", "comment_collector", "item_writer"):
            rig.fleet.scale(service, 1)
        job = rig.submit("list", [str(n) for n in range(1, 6)]).job
        wait_for(lambda: rig.books("detail")["done"] > 50, 60, what="the crawl to be under way")
        # When Redis answers two seconds late
        began, done = time.monotonic(), rig.books("detail")["done"]
        proxy.latency_ms = 1000
        time.sleep(15)  # what is measured
        ended, worked = time.monotonic(), rig.books("detail")["done"] - done
        proxy.latency_ms = 0
        drained(rig, job)
        rig.fleet.stop()
    # Then the loop never waited for it
    lines = [tuple(map(float, line.split())) for line in lags.read_text().splitlines()]
    late = sorted(lag for at, lag in lines if began <= at <= ended)
    assert worked > 0
    assert len(late) > 800
    record_property("lag_p50_ms", late[len(late) // 2])
    record_property("lag_p99_ms", p99 := late[len(late) * 99 // 100])
    record_property("lag_max_ms", late[-1])
    assert p99 < 50
