"""Processes are killed at random while they work: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from redis.exceptions import RedisError

import end_to_end.pipeline
from chaos.oracle import assert_whole, downloaded_twice
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.ops import fleet
from threadmill.ops.embedded import EmbeddedRedis
from waiting import wait_for

FORUMS = [str(n) for n in range(1, 11)]
KILLS = 5
LEASE_MS = 2_000
RESTART_S = (0.1, 0.5)
"""Who dies often is started again soon: ten seconds of patience are no test."""
VICTIMS = [*(stage.service for stage in STAGES.values()), "item_writer", "redis"]
DECK = [signal.SIGKILL] * 14 + [signal.SIGSTOP] * 3 + [signal.SIGTERM] * 3
"""What twenty kills are; each victim gets four of them."""


@pytest.mark.scenario(25)
def test_five_kills_of_each_stage_during_a_crawl(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given the demo forum of `make run`, slow enough that there is time to kill
    monkeypatch.setattr(fleet, "RESTART_S", RESTART_S)
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=["--latency-ms", "60", "--jitter-ms", "40"], max_deliveries=20) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        # When a worker of each stage is killed five times, at random moments while its stage has work
        kills = dict.fromkeys(STAGES, 0)
        while any(n < KILLS for n in kills.values()):
            stage = dice.choice([name for name, n in kills.items() if n < KILLS])
            kill(rig, stage)
            kills[stage] += 1
            time.sleep(dice.uniform(0.2, 0.8))  # the moment of the next kill, not a wait for anything
        rig.wait_until_done(job, seconds=180)
        # Then every row is stored once with its true content, and the books say so
        assert_whole(rig, job)


@pytest.mark.chaos
@pytest.mark.scenario(25)
@pytest.mark.seeds(10)
def test_twenty_kills_of_any_process_during_a_crawl_of_a_thousand_posts(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    # Given a crawl of 1,000 posts with a Redis that says yes to nothing that is not on disk
    monkeypatch.setattr(end_to_end.pipeline, "EmbeddedRedis", partial(EmbeddedRedis, fsync="always"))
    monkeypatch.setattr(fleet, "RESTART_S", RESTART_S)
    dice = random.Random(seed)
    victims, ways = VICTIMS * 4, DECK.copy()
    dice.shuffle(victims)
    dice.shuffle(ways)
    slow = ["--mean-comments", "4", "--latency-ms", "900", "--jitter-ms", "400"]
    with pipeline(tmp_path, forum=slow, lease_ttl_ms=LEASE_MS, max_deliveries=50) as rig:
        rig.start()
        for stage in STAGES:
            rig.scale(stage, 2)  # one that takes over from the other
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("detail")["done"], what="the crawl to be under way")
        # When every process is killed four times: most by SIGKILL, some told to stop, some stopped past their leases
        stopped: dict[int, float] = {}
        began = time.monotonic()
        for victim, way in zip(victims, ways, strict=True):
            time.sleep(dice.uniform(0, 0.6))  # the moment of the kill
            wake(stopped)
            hit(rig, victim, way, stopped, which=dice.randrange(2))
            assert not rig.job(job).finished, "it ended before the last kill"
        wait_for(lambda: wake(stopped), what="those that were stopped to go on")
        killed = time.monotonic()
        left = sum(rig.books(stage)["accepted"] - rig.books(stage)["done"] for stage in STAGES)
        rig.turn(latency_ms=0, jitter_ms=0)
        # Then nothing is lost and nothing doubled
        rig.wait_until_done(job, seconds=180)
        record_property("pages", sum(rig.job(job).done.values()))
        record_property("open after the last kill", left)
        client = rig.deployment.client
        record_property("fenced", sum(int(client.hget(rig.lane.stage(stage).stats, "fenced") or 0) for stage in STAGES))
        record_property("seconds of kills", round(killed - began, 1))
        assert downloaded_twice(rig) < len(victims) * 2 * 16  # kills, and pages under way in a worker
        assert_whole(rig, job)


def kill(rig: Pipeline, stage: str) -> None:
    """SIGKILL the stage's worker once it is at work; after the last page of a stage, an idle one is as good."""
    service = STAGES[stage].service

    def at_work() -> int:
        rig.fleet.tend()
        pids = rig.fleet.pids(service)
        books = rig.books(stage)
        idle = books["accepted"] == books["done"] and books["accepted"] > 0
        return pids[0] if pids and (books["leased"] or idle) else 0

    os.kill(wait_for(at_work, 60, what=f"{service} to be at work"), signal.SIGKILL)
    wait_for(lambda: rig.fleet.tend() or len(rig.fleet.pids(service)) == 1, 30, what=f"{service} to be started again")


def hit(rig: Pipeline, victim: str, way: signal.Signals, stopped: dict[int, float], which: int) -> None:
    """One kill, of that replica if it serves. Redis is back when this returns; others go on when `stopped` says."""
    if victim == "redis":
        os.kill(rig.redis.pid, way)
        if way == signal.SIGSTOP:
            time.sleep(2 * LEASE_MS / 1000)  # longer than any lease
            os.kill(rig.redis.pid, signal.SIGCONT)
        else:
            rig.redis.stop()
            rig.redis.start()
        wait_for(lambda: answers(rig), what="Redis to answer")
        return

    def serving() -> int:
        rig.fleet.tend()
        pids = [pid for pid in rig.fleet.pids(victim) if pid not in stopped and pid in known(rig, victim)]
        wake(stopped)
        return pids[which % len(pids)] if pids else 0

    pid = wait_for(serving, 30, what=f"{victim} to serve")
    os.kill(pid, way)
    if way == signal.SIGSTOP:
        stopped[pid] = time.monotonic() + 2 * LEASE_MS / 1000


def wake(stopped: dict[int, float]) -> bool:
    """Let those go on that were stopped for long enough; whether there are no others."""
    for pid in [pid for pid, at in stopped.items() if time.monotonic() >= at]:
        os.kill(pid, signal.SIGCONT)
        del stopped[pid]
    return not stopped


def known(rig: Pipeline, service: str) -> set[int]:
    """The processes of a service that Redis has heard of: their ids are host-pid-random."""
    client, lane = rig.deployment.client, rig.lane
    if service == "item_writer":
        names = [one["name"] for one in client.xinfo_consumers(lane.items, "sql")]
    else:
        (stage,) = [name for name, stage in STAGES.items() if stage.service == service]
        names = client.zrange(lane.stage(stage).workers, 0, -1)
    return {int(name.decode().split("-")[-2]) for name in names}


def answers(rig: Pipeline) -> bool:
    """Whether Redis serves again."""
    try:
        return bool(rig.deployment.client.ping())
    except (RedisError, OSError):
        return False
