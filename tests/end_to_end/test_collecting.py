"""The whole pipeline on the demo forum: what is stored is the truth, and the books balance all the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo_forum.check import rows_of
from demo_forum.run import demo_forum
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.store.connection import connect
from threadmill.store.status import Books, JobBooks, job_books, stage_books
from waiting import wait_for

SMALL = ["--forums", "4", "--pages-per-forum", "3"]
FORUMS = ["1", "2", "3", "4"]
POSTS = 4 * 3 * 20


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(tmp_path, forum=SMALL) as running:
        yield running


def threadmill(rig: Pipeline, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the operator's command line on this deployment."""
    return operate({**os.environ, **rig.environment()}, *arguments)


def operate(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "threadmill", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_crawl_stores_every_post_and_comment_once_and_its_books_balance_in_1000_samples(rig: Pipeline) -> None:
    # Given the three services, and somebody who reads the books as often as possible
    rig.start()
    samples: list[dict[str, Books]] = []
    jobs: list[JobBooks] = []
    over = threading.Event()
    job = "watched"

    def sample() -> None:
        client = connect(rig.redis.url)
        while not over.is_set() or len(samples) < 1000:
            samples.append(stage_books(client, rig.deployment.lanes()))
            jobs.append(job_books(client, rig.deployment.lanes(), job))

    reader = threading.Thread(target=sample)
    reader.start()
    # When a job is collected
    rig.submit("list", FORUMS, job=job)
    books = rig.wait_until_done(job)
    over.set()
    reader.join()
    # Then what is stored is the truth
    check = rig.check()
    assert check.ok, check
    assert check.posts.expected == POSTS
    # And every stage's books balanced in every sample, many of them while work was under way
    assert len(samples) >= 1000
    assert all(books.balanced for sample in samples for books in sample.values())
    assert sum(0 < sample["detail"].done < POSTS for sample in samples) > 20
    # And so did the job's, which was finished from one moment on
    assert all(sum(b.accepted.values()) == sum(b.done.values()) + b.open for b in jobs)
    assert sum(b.open > 0 for b in jobs) > 20
    finished = [b.finished for b in jobs]
    assert finished == sorted(finished)
    assert books.open == 0
    assert not books.dead
    assert books.accepted == books.done


def test_a_second_scan_brings_nothing_and_stops_at_known_posts(rig: Pipeline) -> None:
    # Given a finished crawl
    rig.start()
    rig.wait_until_done(rig.submit("list", FORUMS).job)
    before = sum(rig.hits().values())
    # When the same forums are scanned again
    rig.wait_until_done(rig.submit("list", FORUMS).job)
    # Then only the first pages are downloaded, and nothing below them
    assert sum(rig.hits().values()) - before == len(FORUMS)
    assert rig.check().ok


def test_each_service_starts_alone_and_in_any_order(rig: Pipeline) -> None:
    # Given comments first, then details, and no list scanner yet
    rig.start("comment")
    rig.start("detail")
    job = rig.submit("list", FORUMS).job
    wait_for(lambda: rig.books("detail")["workers"] == 1, what="the detail collector")
    assert rig.books("list")["tasks"] == len(FORUMS)
    # When the list scanner comes last
    rig.start("list")
    # Then the job is done all the same
    rig.wait_until_done(job)
    assert rig.check().ok


def test_one_post_is_collected_again_past_a_backlog_of_100_000(rig: Pipeline) -> None:
    # Given a finished crawl, a slow site, and a backlog of 100,000 other posts
    rig.start()
    rig.wait_until_done(rig.submit("list", FORUMS).job)
    post = next(path for path in rig.hits() if path.startswith("/BBS/comment/")).split("/")[3]
    before = rig.hits()
    rig.turn(latency_ms=20)
    rig.submit("detail", [str(900_000_000 + n) for n in range(100_000)])
    wait_for(lambda: rig.books("detail")["leased"] > 0, what="the backlog to be worked on")
    # When an operator asks for the post and its comments
    answer = threadmill(rig, "requeue", "detail", post, "--cascade", "--json")
    assert answer.returncode == 0, answer.stderr
    # Then it is downloaded again within 2 s, and so are its comments, while the backlog still waits
    path = f"/BBS/post/{post}"
    wait_for(lambda: rig.hits()[path] == before[path] + 1, seconds=2.0, what="the post")
    comments = f"/BBS/comment/{post}/1"
    wait_for(lambda: rig.hits()[comments] == before[comments] + 1, seconds=2.0, what="its comments")
    assert rig.books("detail")["tasks"] > 90_000


def test_replicas_come_and_go_while_the_job_runs(tmp_path: Path) -> None:
    # Given a slow site, so that there is time to scale
    with pipeline(tmp_path, forum=[*SMALL, "--latency-ms", "300"], concurrency=4) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("detail")["done"] > 5, what="the job to be under way")
        # When the detail collector is scaled to 3
        rig.scale("detail", 3)
        # Then status shows three workers, and each of them holds work
        wait_for(lambda: rig.books("detail")["workers"] == 3, what="three workers")
        wait_for(lambda: len(owners(rig, "detail")) == 3, what="work to spread over three")
        assert rig.books("list")["workers"] == rig.books("comment")["workers"] == 1
        # And when it is scaled down again, the two leave and nothing is lost
        rig.scale("detail", 1)
        wait_for(lambda: rig.books("detail")["workers"] == 1, what="one worker")
        done = rig.wait_until_done(job)
        assert not done.dead
        assert rig.check().ok


def owners(rig: Pipeline, stage: str) -> set[str]:
    """The workers that hold leases of a stage."""
    leases = rig.deployment.client.zrange(rig.lane.stage(stage).leases, 0, -1)
    return {lease.decode().rsplit(".", 2)[0] for lease in leases}


def test_status_says_the_same_to_scripts_and_people(rig: Pipeline) -> None:
    # Given a finished crawl
    rig.start()
    rig.wait_until_done(rig.submit("list", FORUMS).job)
    # When its status is asked for
    as_json, table = threadmill(rig, "status", "--json"), threadmill(rig, "status")
    # Then JSON has the fields scripts rely on
    assert as_json.returncode == table.returncode == 0
    source = json.loads(as_json.stdout)["sources"]["bbs"]
    assert source["items_waiting"] == 0
    assert set(source["stages"]) == set(STAGES)
    fields = {"tasks", "requests", "leased", "delayed", "dead", "accepted", "done", "filtered", "workers", "paused"}
    assert all(set(books) >= fields for books in source["stages"].values())
    assert source["stages"]["detail"]["done"] == POSTS
    # And the table shows it
    assert f"{POSTS}" in table.stdout


def test_partitions_and_a_namespace_change_nothing_but_the_keys(tmp_path: Path) -> None:
    # Given a source in four partitions, under a namespace
    with pipeline(tmp_path, forum=SMALL, partitions=4, namespace="prod") as rig:
        rig.start()
        # When it is collected
        rig.wait_until_done(rig.submit("list", FORUMS).job)
        # Then all is there, each service is one worker, and every key is in its lane
        assert rig.check().ok
        assert [rig.books(stage)["workers"] for stage in STAGES] == [1, 1, 1]
        keys = [key.decode() for key in rig.deployment.client.scan_iter(count=1000)]
        assert all(key.startswith("prod:{bbs.") for key in keys)
        assert len({key.split("}")[0] for key in keys if key.endswith(":workers")}) == 4


def test_up_serves_until_it_is_told_to_stop_and_follows_scale(tmp_path: Path) -> None:
    # Given `threadmill up` on one machine, with a Redis of its own, and nothing to do yet
    with demo_forum(tmp_path, SMALL) as url, (tmp_path / "out").open("wb") as out:
        environment = {**os.environ, "COLUMNS": "120", "THREADMILL_SOURCES": "sources/bbs.toml"}
        command = [sys.executable, "-m", "threadmill", "up", "--base-url", url, "--data", str(tmp_path / "data")]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        try:
            told = re.compile(r"THREADMILL_REDIS_URL=(\S+)")
            found = wait_for(lambda: told.search((tmp_path / "out").read_text()), what="the address of its Redis")
            environment["THREADMILL_REDIS_URL"] = found[1]

            def workers() -> int:
                answer = operate(environment, "status", "--json")
                return int(json.loads(answer.stdout)["sources"]["bbs"]["stages"]["detail"]["workers"])

            # When an operator submits a forum, and asks for two detail collectors, then for one
            submitted = operate(environment, "submit", "list", "1", "--json")
            assert json.loads(submitted.stdout)["submitted"] == 1
            assert operate(environment, "scale", "detail=2").returncode == 0
            # Then `status` shows them come and go
            wait_for(lambda: workers() == 2, what="two detail workers")
            assert operate(environment, "scale", "detail=1").returncode == 0
            wait_for(lambda: workers() == 1, what="one detail worker")
            # And Ctrl-C ends it all in good order
            process.send_signal(signal.SIGINT)
            assert process.wait(40) == 0
        finally:
            process.kill()
            process.wait()
    rows = list(rows_of(tmp_path / "data" / "threadmill.db", "posts"))
    assert len(rows) == 60
