"""Redis that dies, loads, forgets, or is full, under a crawl of real processes: nothing is lost, nobody exits."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from redis.exceptions import RedisError

import end_to_end.pipeline
from chaos.crew import IDLE_COMMANDS_PER_S, all_pids, answering, commands_per_second, everything_runs, logs
from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.keys import GROUP
from threadmill.model.stages import STAGES
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.status import items_waiting
from threadmill.store.streams import GROUP_GONE
from waiting import wait_for

POSTS = ["--forums", "4", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "5"]
"""Eighty posts, in four forums."""
DEEP = ["--forums", "4", "--pages-per-forum", "8", "--posts-per-page", "5", "--mean-comments", "5"]
"""Boards of eight pages, which are scanned one after the other."""
FORUMS = ["1", "2", "3", "4"]
SLOW = ["--latency-ms", "300"]


@pytest.mark.scenario(13)
@pytest.mark.chaos
def test_workers_wait_for_a_redis_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Redis that needs some seconds to load what it holds, and a crawl
    # (A snapshot at the head of the file is loaded in one go, in which Redis answers nobody.)
    slow = ("--key-load-delay", "400", "--aof-use-rdb-preamble", "no")
    monkeypatch.setattr(end_to_end.pipeline, "EmbeddedRedis", partial(EmbeddedRedis, fsync="always", options=slow))
    with pipeline(tmp_path, forum=[*POSTS, *SLOW]) as rig:
        ballast = rig.deployment.client.pipeline(transaction=False)
        for n in range(7_000):
            ballast.set(f"ballast:{n}", "x")
        ballast.execute()
        everything_runs(rig)
        pids = all_pids(rig)
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("detail")["done"] > 0, what="the crawl to be under way")
        assert not rig.job(job).finished
        # When it is killed and loads
        rig.redis.kill()
        rig.redis.start()
        began = time.monotonic()
        assert answering(rig) > 0, "it was never seen loading"
        assert time.monotonic() - began > 2.0
        # Then all workers waited, and go on
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(16)
def test_groups_and_empty_streams_that_go_come_back(tmp_path: Path) -> None:
    # Given a crawl
    with pipeline(tmp_path, forum=[*POSTS, "--latency-ms", "100"]) as rig:
        everything_runs(rig)
        pids = all_pids(rig)
        job = rig.submit("list", FORUMS).job
        # When, as long as it lasts, all groups are destroyed and empty streams deleted, again and again
        destroyed = 0

        def finished() -> bool:
            nonlocal destroyed
            destroyed += destroy_groups(rig)
            return rig.job(job).finished

        wait_for(finished, 120, every=0.5, what="the crawl to end")
        # Then it ends whole, by the same processes
        assert destroyed > 10
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(16)
def test_a_flushed_redis_is_worked_with_as_a_new_one(tmp_path: Path) -> None:
    # Given a crawl under way
    with pipeline(tmp_path, forum=[*POSTS, *SLOW]) as rig:
        everything_runs(rig)
        pids = all_pids(rig)
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("comment")["done"] > 0, what="the crawl to be under way")
        assert not rig.job(job).finished
        # When everything is deleted
        client = rig.deployment.client
        client.flushall()
        # Then the workers live, and do not beset Redis
        per_second = commands_per_second(rig, seconds=2)
        assert per_second < IDLE_COMMANDS_PER_S
        assert all_pids(rig) == pids
        # And each service says what happened
        wait_for(lambda: all(GROUP_GONE in log for log in logs(rig).values()), what="all to say that groups were gone")
        # And what is submitted now is collected as ever
        rig.turn(latency_ms=0)
        again = rig.submit("list", FORUMS).job
        rig.wait_until_done(again)
        assert all_pids(rig) == pids
        assert_whole(rig, again)


@pytest.mark.scenario(17)
@pytest.mark.chaos
def test_a_full_redis_stops_producers_only_and_drains_without_them(tmp_path: Path) -> None:
    # Given a crawl under way, its boards not at their ends
    with pipeline(tmp_path, forum=[*DEEP, *SLOW]) as rig:
        everything_runs(rig)
        job = rig.submit("list", FORUMS[:3]).job
        wait_for(lambda: rig.books("detail")["done"] > 5, what="the crawl to be under way")
        # When Redis is full, and a worker dies
        client = rig.deployment.client
        client.config_set("maxmemory", 1)
        os.kill(rig.fleet.pids("detail_collector")[0], signal.SIGKILL)
        wait_for(rig.fleet.tend, what="its death to be seen")
        wait_for(lambda: rig.fleet.tend() or rig.fleet.pids("detail_collector"), what="another in its place")
        # Then nothing more can be submitted, no board is scanned on, and all that was submitted before is collected
        with pytest.raises(RedisError, match="maxmemory"):
            rig.submit("list", FORUMS[3:], job=job)
        worked_off = partial(drained, rig, "detail", "comment")
        wait_for(lambda: not rig.books("list")["leased"] and worked_off(), 60, every=0.1, what="what waited to be done")
        assert not drained(rig, "list")
        scanned, pids = rig.books("list")["done"], all_pids(rig)
        assert commands_per_second(rig, 2) < IDLE_COMMANDS_PER_S
        assert rig.books("list")["done"] == scanned
        # And once there is room, the boards are scanned to their ends, and so is what is submitted now
        client.config_set("maxmemory", 0)
        assert rig.submit("list", FORUMS[3:], job=job).submitted == 1
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(18)
@pytest.mark.chaos
def test_a_redis_that_refuses_to_write_now_and_then_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    # Given a crawl
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=[*POSTS, "--latency-ms", "150"]) as rig:
        everything_runs(rig)
        pids, client = all_pids(rig), rig.deployment.client
        job = rig.submit("list", FORUMS).job
        # When Redis refuses every write for a moment (it misses a replica), again and again
        for _ in range(6):
            client.config_set("min-replicas-to-write", 1)
            time.sleep(dice.uniform(0.1, 1.2))  # the refusal itself
            client.config_set("min-replicas-to-write", 0)
            time.sleep(dice.uniform(0.1, 1.2))  # the moment of the next one
        # Then nobody waits for what will not come: all go on by themselves
        rig.wait_until_done(job, seconds=30)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(19)
@pytest.mark.chaos
def test_scripts_that_are_forgotten_all_the_time(tmp_path: Path) -> None:
    # Given a crawl
    with pipeline(tmp_path, forum=[*POSTS, "--latency-ms", "100"]) as rig:
        everything_runs(rig)
        pids = all_pids(rig)
        job = rig.submit("list", FORUMS).job
        # When Redis forgets its scripts every 300 ms, as long as it lasts
        flushes = 0

        def finished() -> bool:
            nonlocal flushes
            flushes += bool(rig.deployment.client.script_flush())
            return rig.job(job).finished

        wait_for(finished, 120, every=0.3, what="the crawl to end")
        # Then it ends whole
        assert flushes > 3
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


def drained(rig: Pipeline, *stages: str) -> bool:
    """Whether nothing waits in these stages, and all they collected is stored."""
    books = [rig.books(stage) for stage in stages]
    left = sum(book[name] for book in books for name in ("tasks", "requests", "leased", "delayed"))
    return not left and items_waiting(rig.deployment.client, rig.deployment.lanes()) == 0


def destroy_groups(rig: Pipeline) -> int:
    """XGROUP DESTROY of every group, and DEL of every stream that is empty; answers how many groups there were."""
    client, destroyed = rig.deployment.client, 0
    delete_if_empty = client.register_script("return redis.call('XLEN', KEYS[1]) == 0 and redis.call('DEL', KEYS[1])")
    for key in (key for stage in STAGES for key in (rig.lane.stage(stage).tasks, rig.lane.stage(stage).express)):
        if client.exists(key):
            destroyed += client.xgroup_destroy(key, GROUP)
            delete_if_empty(keys=[key])
    if client.exists(rig.lane.items):
        destroyed += client.xgroup_destroy(rig.lane.items, "sql")
        delete_if_empty(keys=[rig.lane.items])
    return destroyed
