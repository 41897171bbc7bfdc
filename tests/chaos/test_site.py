"""A site that is down, broken or strict, and a database that is locked: nothing is given up or stored twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from waiting import wait_for

HUNDRED = ["--forums", "5", "--pages-per-forum", "1", "--posts-per-page", "20", "--mean-comments", "3"]
"""A hundred posts."""
FORUMS = ["1", "2", "3", "4", "5"]


@pytest.mark.scenario(24)
@pytest.mark.chaos
@pytest.mark.parametrize("seconds", [5, 60])
def test_no_post_is_given_up_while_the_site_is_down(tmp_path: Path, seconds: float) -> None:
    # Given a crawl of a hundred posts with the settings a user has who sets none, some of them collected
    with pipeline(tmp_path, forum=[*HUNDRED, "--latency-ms", "300"]) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("detail")["done"] > 10, what="posts to be collected")
        # When the site hangs up on everybody for a while
        rig.turn(down=True)
        assert rig.books("detail")["done"] < 100
        time.sleep(seconds)  # the outage itself
        assert rig.books("detail")["delayed"] > 0
        rig.turn(down=False, latency_ms=0)
        # Then all are collected, and nothing was given up
        done = rig.wait_until_done(job, seconds=60 + 3 * seconds)
        assert done.done["detail"] == 100
        assert_whole(rig, job)


@pytest.mark.scenario(24)
@pytest.mark.chaos
def test_a_site_that_answers_500_to_every_third_request_gives_all_it_has(tmp_path: Path) -> None:
    # Given a forum that fails at 30 % of the requests, by its seed
    with pipeline(tmp_path, forum=[*HUNDRED, "--error-rate", "0.3"], retry_base_ms=200) as rig:
        rig.start()
        # When it is collected; then all of it is stored, and failures were counted as what they are
        job = rig.submit("list", FORUMS).job
        rig.wait_until_done(job)
        assert refused(rig) > 30
        assert_whole(rig, job)


@pytest.mark.scenario(24)
@pytest.mark.chaos
def test_a_site_that_asks_to_wait_is_waited_for(tmp_path: Path) -> None:
    # Given a forum that takes 40 requests per second and asks whoever comes faster to wait, and a collector that
    # would give up at the second failure
    strict = ["--rate-limit-per-s", "40", "--retry-after-s", "1"]
    with pipeline(tmp_path, forum=[*HUNDRED, *strict], max_failures=2) as rig:
        rig.start()
        # When it is collected; then it is waited for, and that is no failure
        job = rig.submit("list", FORUMS).job
        rig.wait_until_done(job)
        assert refused(rig) > 0
        assert_whole(rig, job)


@pytest.mark.scenario(21)
@pytest.mark.chaos
def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    # Given a crawl, and some rows stored
    with pipeline(tmp_path, forum=[*HUNDRED, "--latency-ms", "20"]) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: stored(rig) > 0, what="rows")
        (writer,) = rig.fleet.pids("item_writer")
        # When another holds the database for some seconds, until all is collected and waits to be stored
        with locked(rig.database):
            wait_for(lambda: rig.job(job).finished, what="all to be collected")
            waited_for = time.monotonic() + 3
            wait_for(lambda: time.monotonic() > waited_for, what="the writer to have found it locked, often")
            before = stored(rig)
        # Then the writer, still the same, stores it
        rig.wait_until_done(job)
        assert 0 < before < stored(rig)
        assert rig.fleet.pids("item_writer") == [writer]
        assert_whole(rig, job)


@pytest.mark.scenario(21)
@pytest.mark.chaos
def test_an_item_writer_killed_before_during_and_after_its_transaction_stores_every_row_once(tmp_path: Path) -> None:
    # Given a crawl whose rows are being stored
    with pipeline(tmp_path, forum=[*HUNDRED, "--latency-ms", "20"]) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: stored(rig) > 0, what="rows")
        # When the writer is killed with a batch that the locked database does not take, and as soon as its successor
        # committed something, three times
        for _ in range(3):
            with locked(rig.database):
                wait_for(lambda: held(rig) > 0 or rig.job(job).finished, what="a batch in the writer's hands")
                kill_the_writer(rig)
                before = stored(rig)
            wait_for(lambda before=before: stored(rig) > before or rig.job(job).finished, what="its successor's commit")
            kill_the_writer(rig)
        # Then every row is stored, once
        rig.wait_until_done(job)
        assert rig.fleet.restarts >= 6
        assert_whole(rig, job)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else can write while this lasts."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def stored(rig: Pipeline) -> int:
    """Rows that were committed; 0 before there are tables."""
    try:
        with closing(sqlite3.connect(f"file:{rig.database}?mode=ro", uri=True, timeout=30)) as reader:
            (count,) = reader.execute(
                "SELECT (SELECT count(*) FROM posts) + (SELECT count(*) FROM comments)"
            ).fetchone()
            return int(count)
    except sqlite3.OperationalError:
        return 0


def held(rig: Pipeline) -> int:
    """Entries that were delivered to a writer and are not settled."""
    return sum(group["pending"] for group in rig.deployment.client.xinfo_groups(rig.lane.items))


def kill_the_writer(rig: Pipeline) -> None:
    """SIGKILL, and wait for its successor."""

    def running() -> list[int]:
        rig.fleet.tend()
        return rig.fleet.pids("item_writer")

    (pid,) = wait_for(running, what="a writer")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: running() not in ([], [pid]), what="its successor")


def refused(rig: Pipeline) -> int:
    """Requests that the forum answered with 429 or 500."""
    with urllib.request.urlopen(f"{rig.forum_url}/hits", timeout=30) as response:
        return int(json.load(response)["refused"])
