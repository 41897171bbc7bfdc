"""The network between the workers and Redis is bad in every way we know: nothing is lost, nothing is done twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from chaos.behind_proxy import CONCURRENCY, SLOW, SMALL, behind_proxy, drained, start
from chaos.proxy import Proxy
from threadmill.model.stages import STAGES
from waiting import wait_for


@pytest.mark.scenario(15)
def test_a_bad_network_for_some_seconds(tmp_path: Path, seed: int) -> None:
    # Given a crawl with leases of a second, its bytes a little late
    dice = random.Random(seed)
    with behind_proxy(tmp_path, [*SMALL, *SLOW], seed=seed, lease_ttl_ms=1000) as (rig, proxy):
        proxy.latency_ms = 5
        job = start(rig, forums=3)
        # When requests and replies are dropped, connections are reset, and all bytes vanish for longer than a lease
        for _ in range(6):
            drop(proxy, dice)
        proxy.reset()
        proxy.blackhole()
        time.sleep(2)  # the hole itself
        proxy.heal()
        proxy.slices = True
        # Then everything is done once, without a restart
        drained(rig, job, 60)


@pytest.mark.scenario(14)
@pytest.mark.chaos
def test_forty_requests_and_replies_are_lost_during_a_crawl(tmp_path: Path, seed: int) -> None:
    # Given a crawl slow enough to last
    dice = random.Random(seed)
    with behind_proxy(tmp_path, ["--latency-ms", "250", "--jitter-ms", "100"], lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig)
        # When forty times what travels is lost, before Redis or after it acted
        for _ in range(40):
            assert not rig.job(job).finished, f"the crawl ended after {proxy.dropped} drops"
            drop(proxy, dice)
        # Then effects happened once
        twice = drained(rig, job)
        assert twice < 2 * CONCURRENCY * len(STAGES)


@pytest.mark.scenario(15)
@pytest.mark.chaos
def test_connections_are_reset_three_times_a_second(tmp_path: Path) -> None:
    # Given a crawl
    with behind_proxy(tmp_path, ["--forums", "5", *SLOW], lease_ttl_ms=2000) as (rig, proxy):
        job = start(rig, forums=5)
        # When every connection is reset every 300 ms, for six seconds
        for _ in range(20):
            proxy.reset()
            time.sleep(0.3)  # the time between two
        assert not rig.job(job).finished
        # Then everything is done once
        drained(rig, job)


@pytest.mark.scenario(15)
@pytest.mark.chaos
def test_bytes_come_in_small_pieces(tmp_path: Path, seed: int) -> None:
    # Given a proxy that passes on 1 to 7 bytes at a time, and resets in the middle of replies
    with behind_proxy(tmp_path, [*SMALL, *SLOW], seed=seed, lease_ttl_ms=2000) as (rig, proxy):
        proxy.slices = True
        job = start(rig, forums=3)
        for _ in range(5):
            proxy.reset()
            time.sleep(0.4)  # some pieces pass
        # When the crawl goes through it as a whole, then no reply is taken for another's
        drained(rig, job)


def drop(proxy: Proxy, dice: random.Random) -> None:
    """Lose a request or a reply, at a random moment."""
    time.sleep(dice.uniform(0, 0.15))  # the moment
    before = proxy.dropped
    dice.choice([proxy.drop_request, proxy.drop_reply])()
    wait_for(lambda: proxy.dropped > before, 10, every=0.002, what="something to drop")
