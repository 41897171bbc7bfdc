"""Every service is killed between every two of its I/O steps: nothing is lost, effects happen once."""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import time
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import orjson
import psutil
import pytest

from chaos.failpoints import Failpoints
from chaos.oracle import assert_whole
from demo_forum.check import truth_of
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES, stage_named
from threadmill.ops import fleet
from threadmill.store.calls import run
from threadmill.store.work import Child
from waiting import wait_for


def around(*steps: str) -> set[str]:
    """The points before and after each of these steps."""
    return {f"{when}:{step}" for when in ("before", "after") for step in steps}


def before(*steps: str) -> set[str]:
    """The points before steps that change nothing: what comes after one of them comes before the next."""
    return {f"before:{step}" for step in steps}


STARTING = before("INFO", "PING", "SCRIPT LOAD", "books", "CLIENT ID") | around("ensure_group", "report")
WORKING = around("XREADGROUP", "XAUTOCLAIM", "admit", "refuse", "lease", "renew", "reclaim", "download", "commit")
WORKING |= around("delay", "park") | {"after:callback"}
AMID = {"amid:admit", "amid:lease", "amid:commit", "amid:callback"}
"""The trip to Redis is cut after this verb; the callback's first output was taken in."""
HOLDING = around("hold")
LEAVING = around("release", "leave") | before("CLIENT UNBLOCK")
ANYBODYS = {"BGREWRITEAOF"}
"""Steps that one service takes for all, whichever comes first."""
OF_STAGE = STARTING | WORKING | AMID | HOLDING | LEAVING
OF_WRITER = before("INFO", "PING", "SCRIPT LOAD") | around("ensure_group", "leave_items", "claim_items", "XREADGROUP")
OF_WRITER |= around("settle", "open.begin", "open.commit", "write.begin", "write.commit")
BEGIN, SETTLE = "item_writer:before:write.begin", "item_writer:before:settle"
FORUMS = [str(number) for number in range(1, 7)]
SMALL = ["--forums", "6", "--pages-per-forum", "2", "--posts-per-page", "5", "--mean-comments", "4"]
SETTINGS = {"lease_ttl_ms": 600, "max_deliveries": 1000, "max_failures": 1000, "retry_base_ms": 50, "retry_max_ms": 200}


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "RESTART_S", (0.02, 0.02))


@pytest.mark.scenario(2)
def test_kills_around_a_commit_and_between_the_rows_commit_and_the_ack(tmp_path: Path) -> None:
    # Given a forum that is worked off slowly, and points around both commits: a page's in Redis, rows' in the database
    forum = [*SMALL, "--forums", "2", "--latency-ms", "100"]
    with pipeline(tmp_path, forum=forum, concurrency=4, **SETTINGS) as rig:
        points = Failpoints(tmp_path / "points")
        points.arm(named("detail_collector", [*around("commit"), "amid:commit"]))
        points.arm(named("item_writer", around("write.commit")))
        rig.fleet.environment |= points.environment
        rig.start()
        # When it is collected
        job = rig.submit("list", FORUMS[:2]).job
        rig.wait_until_done(job)
        # Then each struck once, and all is there, once
        assert points.waiting() == set()
        assert rig.fleet.restarts == 5
        assert_whole(rig, job)


@pytest.mark.scenario(1)
@pytest.mark.chaos
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_killed_at_every_step(tmp_path: Path, stage: str) -> None:
    # Given a forum that fails at times and bids to wait, what is no task, what is no request, and every point armed
    forum = [*SMALL, "--error-rate", "0.2", "--latency-ms", "150", "--rate-limit-per-s", "5"]
    with pipeline(tmp_path, forum=forum, grace_ms=50, partitions=2, **SETTINGS) as rig:
        service, points = STAGES[stage].service, Failpoints(tmp_path / "points")
        points.arm(named(service, OF_STAGE))
        rig.fleet.environment |= points.environment
        rig.start()
        rig.scale(stage, 3)
        # When the fleet crawls, and goes on until each was reached
        jobs = crawl_until_all_fired(rig, points, stage, nonsense=True)
        # Then nothing is lost or doubled, and there is no point of the service that is not listed
        for job in jobs:
            rig.wait_until_done(job)
        for job in jobs:
            assert_whole(rig, job, dead=["malformed", "unreadable-request"])
        assert rig.check().ok, rig.check()
        assert unlisted(points, service, OF_STAGE) == set()


@pytest.mark.scenario(2)
@pytest.mark.chaos
def test_the_item_writer_killed_at_every_step(tmp_path: Path) -> None:
    # Given two writers, and every point of theirs armed
    with pipeline(tmp_path, forum=[*SMALL, "--latency-ms", "20"], **SETTINGS) as rig:
        points = Failpoints(tmp_path / "points")
        points.arm(named("item_writer", OF_WRITER))
        rig.fleet.environment |= points.environment
        rig.start()
        rig.fleet.scale("item_writer", 2)
        # When the fleet crawls, and goes on until each was reached
        jobs = crawl_until_all_fired(rig, points, "detail")
        # Then nothing is lost or doubled, and there is no point of the service that is not listed
        for job in jobs:
            rig.wait_until_done(job)
        for job in jobs:
            assert_whole(rig, job)
        assert unlisted(points, "item_writer", OF_WRITER) == set()


@pytest.mark.scenario(22)
@pytest.mark.chaos
def test_old_rows_written_after_newer_ones_change_nothing(tmp_path: Path) -> None:
    # Given a writer that is stopped before its transaction, the first versions of a growing forum's posts in hand
    growing = ["--new-comments-per-minute", "300", "--growth-seconds", "16"]
    with pipeline(tmp_path, forum=[*SMALL, "--forums", "2", *growing], **SETTINGS) as rig:
        grown_at = time.monotonic() + 16
        points = Failpoints(tmp_path / "points")
        rig.fleet.environment |= points.environment
        rig.start("list", "detail", writer=False)
        first = rig.submit("list", ["1", "2"]).job
        wait_for(lambda: rig.books("detail")["done"] == 20, what="the first versions to be collected")
        old = collected_counts(rig)
        points.arm([BEGIN], signal.SIGSTOP)
        rig.fleet.scale("item_writer", 1)
        (late,) = rig.fleet.pids("item_writer")
        wait_for(lambda: points.fired(BEGIN) and is_stopped(late), what="the writer to stop before its transaction")
        # When the posts have changed and are collected again, and another writer stores both versions
        wait_for(lambda: time.monotonic() > grown_at, what="the forum to have grown")
        job = rig.submit("list", ["1", "2"]).job
        rig.scale("comment", 1)
        rig.fleet.scale("item_writer", 2)
        rig.wait_until_done(first)
        rig.wait_until_done(job)
        new = rows(rig)
        assert any(new[post] != count for post, count in old.items()), "no post has grown"
        # And the first goes on, and writes what it had
        points.arm([SETTLE], signal.SIGSTOP)
        os.kill(late, signal.SIGCONT)
        wait_for(lambda: points.fired(SETTLE) and is_stopped(late), what="the late writer to have written")
        # Then every row is still the newer one, and nothing is doubled, nor when it has settled
        assert rows(rig) == new
        os.kill(late, signal.SIGCONT)
        rig.fleet.scale("item_writer", 0)
        assert psutil.Process(late).wait(10) == 0
        assert rows(rig) == new
        assert_whole(rig, job)


def named(service: str, steps: Collection[str]) -> set[str]:
    return {f"{service}:{step}" for step in steps}


def unlisted(points: Failpoints, service: str, listed: Collection[str]) -> set[str]:
    """Steps that the service took and that have no point on the list."""
    passed = {point.partition(":")[2] for point in points.passed() if point.startswith(f"{service}:")}
    return {step_of(point) for point in passed} - {step_of(point) for point in listed} - ANYBODYS


def step_of(point: str) -> str:
    return point.partition(":")[2]


def push_nonsense(rig: Pipeline, stage: str) -> None:
    """A task that is none, to be refused, and a queued request that cannot be read, to be parked."""
    store = rig.deployment.store(rig.lane, stage_named(stage))
    rig.deployment.client.xadd(store.keys.tasks, {"task": "[1, 2]"})
    run(rig.deployment.client, store.enqueue([Child(b"unreadable", "", 0)], token=secrets.token_hex(4)))


def crawl_until_all_fired(rig: Pipeline, points: Failpoints, stage: str, *, nonsense: bool = False) -> list[str]:
    """Collect the forum, and then the stage's share of it again and again, until no point waits; the jobs."""
    service, told = STAGES[stage].service, set[int]()
    keys = FORUMS if stage == "list" else [str(post["post_id"]) for post in truth_of(rig.forum_url, "posts")]
    jobs = [rig.submit("list", FORUMS).job]
    if nonsense:
        push_nonsense(rig, stage)

    def all_fired() -> bool:
        rig.fleet.tend()
        waiting = {point.partition(":")[2] for point in points.waiting()}
        if waiting and rig.job(jobs[-1]).finished:
            jobs.append(rig.submit(stage, keys, force=True).job)
            if nonsense and waiting & around("refuse", "park"):
                push_nonsense(rig, stage)
        if not waiting & HOLDING:
            rig.turn(rate_limit_per_s=None)
        if waiting and waiting <= LEAVING:
            for pid in (set(rig.fleet.pids(service)) & holders(rig, stage)) - told:
                told.add(pid)
                os.kill(pid, signal.SIGTERM)
        return not waiting

    try:
        wait_for(all_fired, 240, every=0.1)
    except AssertionError:
        pytest.fail(f"never reached: {sorted(points.waiting())}")
    return jobs


def holders(rig: Pipeline, stage: str) -> set[int]:
    """The processes that have leases of the stage: a lease is named <host>-<pid>-<random>.<call>.<number>."""
    leases = [
        lease.decode()
        for lane in rig.deployment.lanes()
        for lease in rig.deployment.client.zrange(lane.stage(stage).leases, 0, -1)
    ]
    return {int(lease.rsplit(".", 2)[0].split("-")[-2]) for lease in leases}


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def collected_counts(rig: Pipeline) -> dict[str, int]:
    """Each post's number of comments, as it was collected and waits to be stored."""
    pages = [orjson.loads(fields[b"i"]) for _, fields in rig.deployment.client.xrange(rig.lane.items)]
    return {str(item["post_id"]): item["comment_count"] for page in pages for item in page if "comment_count" in item}


def rows(rig: Pipeline) -> dict[str, int]:
    """Each stored post's number of comments."""
    with closing(sqlite3.connect(rig.database)) as connection:
        return dict(connection.execute("SELECT post_id, comment_count FROM posts"))
