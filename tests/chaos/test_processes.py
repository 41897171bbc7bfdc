"""Workers that die, stop, hang or are told to go, as real processes: nothing is lost, effects happen once."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.oracle import assert_whole, downloaded_twice
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.keys import GROUP
from threadmill.model.stages import STAGES, stage_named
from threadmill.store.calls import run
from threadmill.store.letters import dead_letters
from threadmill.store.work import Record
from waiting import wait_for

SMALL = ["--forums", "1", "--pages-per-forum", "1", "--posts-per-page", "10", "--mean-comments", "3"]
"""Ten posts on one list page."""
LEASE_MS = 500
HARMFUL = """
import os, signal, sys, time
from detail_collector import settings
from detail_collector.spider import DetailCollector
from threadmill.crawl.service import run_stage
from threadmill.ops.service import run_service

class Harmed(DetailCollector):
    def collect(self, page):
        if page.reference.key == os.environ["HARMFUL_KEY"]:
            {harm}
        yield from super().collect(page)

sys.exit(run_service("harmed_collector", lambda config: run_stage(config, Harmed, settings)))
"""


@pytest.mark.scenario(3)
@pytest.mark.chaos
def test_a_task_that_kills_its_worker_every_time_is_parked_and_its_neighbours_are_done(tmp_path: Path) -> None:
    # Given a detail collector that one of ten posts kills, whenever it is parsed
    # (leases that outlast a busy machine: one that expires under a living worker counts as a delivery too)
    with pipeline(tmp_path, forum=SMALL, lease_ttl_ms=1_500, max_deliveries=3) as rig:
        key = post_ids(rig)[4]
        start_harmful(rig, tmp_path, key, "os.kill(os.getpid(), signal.SIGKILL)")
        # When all are collected
        job = rig.submit("list", ["1"]).job
        done = rig.wait_until_done(job)
        # Then it is parked, said to have crashed its workers, and it alone
        assert letters(rig, "detail") == [(key, "crashed")], letters(rig, "detail")
        assert done.dead == {"detail": 1}
        assert_whole(rig, job, dead=[f'"k":"{key}"'])


@pytest.mark.scenario(4)
@pytest.mark.chaos
def test_workers_that_died_leave_no_records(tmp_path: Path) -> None:
    # Given a crawl at work, each stage of two workers
    forum = ["--forums", "4", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "5"]
    with pipeline(tmp_path, forum=[*forum, "--latency-ms", "80"], lease_ttl_ms=LEASE_MS, max_deliveries=20) as rig:
        rig.start()
        for stage in STAGES:
            rig.scale(stage, 2)
        job = rig.submit("list", [str(n) for n in range(1, 5)]).job
        wait_for(lambda: rig.books("comment")["done"] > 5, what="all stages to be at work")
        # When all are killed at once, and others come in their place
        for pid in worker_pids(rig):
            os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: rig.fleet.tend() or worker_pids(rig) == [], what="the deaths to be seen")
        rig.wait_until_done(job)
        # Then, silent for long enough, the dead are forgotten: only the living have records and consumers
        assert_whole(rig, job)
        living = set(worker_pids(rig))

        def forgotten() -> bool:
            for stage in STAGES:
                store = rig.deployment.store(rig.lane, stage_named(stage))
                run(rig.deployment.client, store.reclaim(max_deliveries=20, silence_ms=3_000))
            return recorded(rig) <= living

        wait_for(forgotten, 30, every=0.5, what="the dead to be forgotten")
        assert len(living) == 6


@pytest.mark.scenario(5)
def test_a_worker_stopped_past_its_leases_is_fenced(tmp_path: Path) -> None:
    # Given a detail collector that downloaded ten pages, and parses one for as long as it takes to stop it
    with pipeline(tmp_path, forum=[*SMALL, "--latency-ms", "200"], lease_ttl_ms=LEASE_MS) as rig:
        parsing = tmp_path / "parsing"
        start_harmful(rig, tmp_path, post_ids(rig)[4], f"open({str(parsing)!r}, 'w').close(); time.sleep(2)")
        job = rig.submit("list", ["1"]).job
        wait_for(parsing.exists, what="the worker to hold downloaded pages")
        (pid,) = rig.fleet.pids("harmed_collector")
        # When it is stopped until another did its pages, and then goes on
        with stopped(pid):
            rig.scale("detail", 1)
            wait_for(lambda: rig.books("detail")["done"] == 10, what="another worker to do its pages")
        # Then what it says of them is refused, and counted
        wait_for(lambda: stat(rig, "detail", "fenced") > 0, what="a late commit to be fenced")
        rig.wait_until_done(job)
        assert rig.fleet.pids("harmed_collector") == [pid]
        assert stat(rig, "detail", "reclaimed") == downloaded_twice(rig) > 0
        assert_whole(rig, job)


@pytest.mark.scenario(6)
def test_pages_of_a_worker_told_to_stop_are_given_back_and_no_death_is_counted(tmp_path: Path) -> None:
    # Given a detail collector that has little time to finish and slow downloads under way
    with pipeline(tmp_path, forum=SMALL, grace_ms=200) as rig:
        rig.start("list")
        job = rig.submit("list", ["1"]).job
        wait_for(lambda: rig.books("list")["done"] == 1, what="the list to be scanned")
        rig.turn(latency_ms=60_000)
        rig.scale("detail", 1)
        process = psutil.Process(rig.fleet.pids("detail_collector")[0])
        wait_for(lambda: detail_hits(rig) == 10, what="all to be downloading")
        # When it gets SIGTERM
        rig.scale("detail", 0)
        process.wait(10)
        # Then all its pages wait again, as if nobody had had them
        client, keys = rig.deployment.client, rig.lane.stage("detail")
        waiting = [Record.parse(member[8:]) for member in client.zrange(keys.requests, 0, -1)]
        assert [(record.deliveries, record.failures) for record in waiting] == [(0, 0)] * 10
        assert (rig.books("detail")["leased"], client.zcard(keys.workers)) == (0, 0)
        # And the next worker does them
        rig.turn(latency_ms=0)
        rig.scale("detail", 1)
        rig.scale("comment", 1)
        rig.wait_until_done(job)
        assert stat(rig, "detail", "reclaimed") == 0
        assert_whole(rig, job)


@pytest.mark.scenario(7)
@pytest.mark.chaos
def test_a_page_ten_times_longer_than_the_lease_is_downloaded_once(tmp_path: Path) -> None:
    # Given a forum that takes ten lease times for a post, and two workers who would take an expired lease
    with pipeline(tmp_path, forum=SMALL, lease_ttl_ms=LEASE_MS) as rig:
        rig.start("list")
        job = rig.submit("list", ["1"]).job
        wait_for(lambda: rig.books("list")["done"] == 1, what="the list to be scanned")
        rig.turn(latency_ms=10 * LEASE_MS)
        rig.scale("detail", 2)
        rig.scale("comment", 1)
        wait_for(lambda: detail_hits(rig) == 10, what="all posts to be downloading")
        rig.turn(latency_ms=0)  # for the comments, not for the posts that were asked for
        # When it is collected; then nothing was taken from anybody
        rig.wait_until_done(job)
        assert downloaded_twice(rig) == 0
        assert [stat(rig, stage, "reclaimed") for stage in STAGES] == [0, 0, 0]
        assert_whole(rig, job)


@pytest.mark.scenario(8)
def test_a_parser_that_blocks_the_event_loop_for_longer_than_the_lease_loses_nothing(tmp_path: Path) -> None:
    # Given a detail collector whose parser sleeps for five lease times on one post, and a sound one beside it
    with pipeline(tmp_path, forum=SMALL, lease_ttl_ms=LEASE_MS) as rig:
        start_harmful(rig, tmp_path, post_ids(rig)[4], f"time.sleep({5 * LEASE_MS / 1000})")
        job = rig.submit("list", ["1"]).job
        wait_for(lambda: rig.books("detail")["leased"], what="the blocked worker to have pages")
        rig.scale("detail", 1)
        # When all are collected; then its pages stayed its own
        rig.wait_until_done(job)
        assert (stat(rig, "detail", "reclaimed"), stat(rig, "detail", "fenced")) == (0, 0)
        assert downloaded_twice(rig) == 0
        assert_whole(rig, job)


def start_harmful(rig: Pipeline, folder: Path, key: str, harm: str) -> None:
    """Start the pipeline with a detail collector that does itself harm at the post `key`."""
    (folder / "harmed_collector.py").write_text(HARMFUL.format(harm=harm))
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    rig.fleet.environment |= {"PYTHONPATH": path, "HARMFUL_KEY": key}
    rig.start("list", "comment")
    rig.fleet.scale("harmed_collector", 1)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def post_ids(rig: Pipeline) -> list[str]:
    with urllib.request.urlopen(f"{rig.forum_url}/truth/posts", timeout=30) as response:
        return [str(json.loads(line)["post_id"]) for line in response]


def letters(rig: Pipeline, stage: str) -> list[tuple[str, str]]:
    """The key and the reason of each dead letter, whose body is the page's reference."""
    found = dead_letters(rig.deployment.client, rig.lane, stage)
    return [(json.loads(letter.body)["k"], letter.reason) for letter in found]


def stat(rig: Pipeline, stage: str, name: str) -> int:
    value: Any = rig.deployment.client.hget(rig.lane.stage(stage).stats, name)
    return int(value or 0)


def detail_hits(rig: Pipeline) -> int:
    return sum(count for path, count in rig.hits().items() if path.startswith("/BBS/post/"))


def worker_pids(rig: Pipeline) -> list[int]:
    return [pid for stage in STAGES.values() for pid in rig.fleet.pids(stage.service)]


def recorded(rig: Pipeline) -> set[int]:
    """The processes that workers' records and consumers are of: a worker's id is host-pid-random."""
    client, names = rig.deployment.client, set()
    for stage in STAGES:
        keys = rig.lane.stage(stage)
        names |= {*client.zrange(keys.workers, 0, -1), *client.hkeys(keys.reports)}
        for stream in (keys.tasks, keys.express):
            names |= {consumer["name"] for consumer in client.xinfo_consumers(stream, GROUP)}
    return {int(name.decode().split("-")[-2]) for name in names}
