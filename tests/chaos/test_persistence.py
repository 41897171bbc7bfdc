"""What Redis has on its disk, and what it has not: killed, cut off from power, cut anywhere, out of room."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import RedisError

import end_to_end.pipeline
from chaos.aof import AppendOnlyFile
from chaos.crew import IDLE_COMMANDS_PER_S, all_pids, all_stopped, answering, commands_per_second, everything_runs, logs
from chaos.oracle import assert_whole, downloaded_twice
from chaos.small_disk import small_disk
from end_to_end.pipeline import Pipeline, pipeline
from store.census import audit
from threadmill.model.stages import STAGES
from threadmill.ops.doctor import examine
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import connect
from waiting import wait_for

pytestmark = pytest.mark.chaos

FORUM = ["--forums", "4", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "5"]
"""Eighty posts, in four forums."""
BOARDS = ["1", "2", "3", "4"]
SLOW = ["--latency-ms", "400", "--jitter-ms", "400"]
Servers = Callable[..., None]


@pytest.fixture
def redis_with(monkeypatch: pytest.MonkeyPatch) -> Servers:
    """Decides how the rig's Redis is started."""

    def choose(**options: Any) -> None:
        monkeypatch.setattr(end_to_end.pipeline, "EmbeddedRedis", partial(EmbeddedRedis, **options))

    return choose


@pytest.mark.scenario(9)
@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_redis_killed_every_few_seconds_loses_nothing(
    tmp_path: Path, redis_with: Servers, seed: int, fsync: str
) -> None:
    # Given a crawl that lasts, two workers a stage. (With everysec a write waits while an fsync is under way, so that
    # a kill may take what was said in that moment; what was submitted long before is not touched by it.)
    dice = random.Random(seed)
    redis_with(fsync=fsync)
    with pipeline(tmp_path, forum=[*FORUM, "--pages-per-forum", "3", *SLOW]) as rig:
        everything_runs(rig, replicas=2)
        pids = all_pids(rig)
        job = rig.submit("list", BOARDS).job
        wait_for(lambda: rig.books("detail")["done"] > 0, what="the crawl to be under way")
        # When Redis is killed again and again, in the midst of it
        kills = 0
        while not rig.job(job).finished and kills < 5:
            rig.redis.kill()
            rig.redis.start()
            answering(rig)
            kills += 1
            time.sleep(dice.uniform(0.5, 2))  # the moment of the next kill
        # Then all is collected, by the same processes
        assert kills > 2
        rig.wait_until_done(job, seconds=180)
        assert all_pids(rig) == pids
        assert downloaded_twice(rig) < kills * 6 * 16  # workers, pages under way in each
        assert_whole(rig, job)


@pytest.mark.scenario(10)
def test_a_power_cut_loses_what_was_just_submitted_and_submitting_it_again_repairs_that(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    # Given a crawl of two boards, long since on disk
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=[*FORUM, *SLOW]) as rig, AppendOnlyFile(rig.redis.folder) as aof:
        everything_runs(rig)
        wait_for(lambda: mended(rig), what="the file to be written anew")
        pids = all_pids(rig)
        job = rig.submit("list", BOARDS[:2]).job
        submitted = time.monotonic()
        wait_for(lambda: rig.books("detail")["done"] > 3 and time.monotonic() > submitted + 2, what="the crawl")
        # And two more, submitted in the last second before the power goes: one in the same job, one in its own
        durable = dice.randint(aof.size_at(time.monotonic() - 1), aof.size)
        rig.submit("list", BOARDS[2:3], job=job)
        late = rig.submit("list", BOARDS[3:]).job
        time.sleep(dice.uniform(0.2, 1.0))  # the moment of the cut
        before = {stage: rig.books(stage) for stage in STAGES}
        with power_cut(rig, aof, durable):
            # Then what Redis has is how things were shortly before: its books balance, and the submissions are gone
            audit(rig.deployment.client, rig.lane, [job, late])
            after = {stage: rig.books(stage) for stage in STAGES}
            assert not rig.job(late).known
            lost = {stage: before[stage]["accepted"] - after[stage]["accepted"] for stage in STAGES}
            assert lost["list"] >= 2
            for stage in STAGES:
                record_property(f"{stage}_lost", lost[stage])
                record_property(f"{stage}_undone", before[stage]["done"] - after[stage]["done"])
        # And the crawl goes on to its end, which knows nothing of them: only the submitter can
        rig.wait_until_done(job)
        assert rig.job(job).finished
        assert not rig.job(late).known
        record_property("posts_missing", rig.check().posts.missing)
        assert rig.check().posts.missing > 0
        # When all boards are submitted again
        again = rig.submit("list", BOARDS)
        assert (again.submitted, again.filtered) == (len(BOARDS), 0)
        rig.wait_until_done(again.job)
        # Then all is there, by the same processes
        assert all_pids(rig) == pids
        record_property("downloaded_twice", downloaded_twice(rig))
        assert_whole(rig, again.job)


@pytest.mark.scenario(10)
def test_power_that_goes_again_and_again_loses_nothing_else(tmp_path: Path, seed: int) -> None:
    # Given a crawl
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=[*FORUM, *SLOW]) as rig, AppendOnlyFile(rig.redis.folder) as aof:
        everything_runs(rig, replicas=2)
        wait_for(lambda: mended(rig), what="the file to be written anew")
        pids = all_pids(rig)
        job = rig.submit("list", BOARDS).job
        aof.keep()
        wait_for(lambda: rig.books("detail")["done"] > 0, what="the crawl to be under way")
        # When the power goes several times, each time taking up to two seconds
        cuts = 0
        while not rig.job(job).finished and cuts < 4:
            now = time.monotonic()
            lasting = dice.randint(aof.size_at(now - 2), aof.size_at(now - 0.5))
            with power_cut(rig, aof, lasting):
                audit(rig.deployment.client, rig.lane, [job])
            cuts += 1
            time.sleep(dice.uniform(1, 2.5))  # the moment of the next cut
        # Then all is collected, by the same processes
        assert cuts > 2
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(11)
def test_a_file_cut_in_a_transaction_holds_whole_commits_only(tmp_path: Path, seed: int) -> None:
    # Given a crawl
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=[*FORUM, *SLOW]) as rig:
        aof = AppendOnlyFile(rig.redis.folder)
        everything_runs(rig)
        pids = all_pids(rig)
        job = rig.submit("list", BOARDS).job
        # When the file is cut again and again: by a few bytes, and inside the last transaction
        for turn in range(4):
            wait_for(lambda: mended(rig), what="the file to be written anew")
            before = rig.books("detail")["done"]
            wait_for(lambda before=before: rig.books("detail")["done"] > before, what="the crawl to go on")
            assert not rig.job(job).finished
            with all_stopped(rig):
                rig.redis.kill()
                first, end = aof.last_transaction()
                size = aof.size - dice.randint(1, 40) if turn % 2 else dice.randrange(first + 1, end)
                assert aof.cut(size) > 0
                rig.redis.start()
                answering(rig)
                # Then Redis starts, with whole commits: every book is what is really there
                audit(rig.deployment.client, rig.lane, [job])
        # And the crawl ends whole
        rig.wait_until_done(job)
        assert all_pids(rig) == pids
        assert_whole(rig, job)


@pytest.mark.scenario(11)
def test_a_file_cut_at_any_byte_holds_books_that_balance(tmp_path: Path, seed: int) -> None:
    # Given the file of a whole crawl
    dice = random.Random(seed)
    with pipeline(tmp_path, forum=[*FORUM, "--posts-per-page", "5"]) as rig:
        rig.start()
        jobs = [rig.submit("list", [board]).job for board in BOARDS]
        for job in jobs:
            rig.wait_until_done(job)
        rig.redis.stop()
        # When it is cut anywhere
        for n in range(25):
            folder = Path(shutil.copytree(rig.redis.folder, tmp_path / f"cut-{n}"))
            aof = AppendOnlyFile(folder)
            aof.cut(dice.randrange(aof.head, aof.size))
            with EmbeddedRedis(folder) as redis:
                # Then Redis starts, and every book is what is really there
                client = connect(redis.url)
                wait_for(lambda client=client: answers(client), what="Redis to load")
                audit(client, rig.lane, jobs)
                client.close()


@pytest.mark.scenario(18)
@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_a_full_disk_stops_everything_until_there_is_room(tmp_path: Path, redis_with: Servers, fsync: str) -> None:
    # Given a crawl, whose Redis has a small disk
    with small_disk(tmp_path / "redis", "24m") as disk:
        redis_with(fsync=fsync, launcher=disk.launcher)
        with pipeline(tmp_path, forum=[*FORUM, *SLOW]) as rig:
            everything_runs(rig)
            job = rig.submit("list", BOARDS[:3]).job
            wait_for(lambda: rig.books("list")["done"] > 1, what="the crawl to be under way")
            # When it is full
            disk.fill()
            # Then nothing can be submitted; nobody exits, and nobody besets Redis, which serves readers (with
            # everysec) or has gone (with always: it keeps no promise it cannot keep)
            wait_for(lambda: refuses(rig), what="Redis to refuse")
            with pytest.raises((RedisError, OSError)):
                rig.submit("list", BOARDS[3:])
            # A service that starts now waits as well
            rig.scale("detail", 2)
            pids = all_pids(rig)
            if fsync == "everysec":
                assert not rig.job(job).finished
                findings = {finding.subject: finding.level for finding in examine(rig.deployment.config).findings}
                assert findings["aof_last_write_status"] == "error"
                wait_for(lambda: commands_per_second(rig, 2) < IDLE_COMMANDS_PER_S, what="Redis to be left alone")
            waiting = "cannot write to its disk" if fsync == "everysec" else "does not answer"
            wait_for(lambda: waiting in logs(rig)["detail_collector-2"], what="the new worker to wait")
            assert all_pids(rig) == pids
            # And once there is room, they go on by themselves
            disk.make_room()
            if fsync == "always":
                rig.redis.kill()
                rig.redis.start()
            wait_for(lambda: not refuses(rig), what="Redis to write again")
            assert rig.submit("list", BOARDS[3:], job=job).submitted == 1
            rig.wait_until_done(job)
            assert all_pids(rig) == pids
            assert_whole(rig, job)


@contextmanager
def power_cut(rig: Pipeline, aof: AppendOnlyFile, durable: int) -> Iterator[None]:
    """Redis dies and has only so many bytes when it is back; the services go on after the block, and mend its file."""
    rig.redis.kill()
    with all_stopped(rig):
        assert aof.cut(durable) > 0
        rig.redis.start()
        answering(rig)
        yield
    wait_for(lambda: mended(rig), what="the file to be written anew")


def mended(rig: Pipeline) -> bool:
    """Whether a worker had Redis write its file anew since it started."""
    state = rig.deployment.client.info("persistence")
    return state["aof_last_rewrite_time_sec"] >= 0 and not state["aof_rewrite_in_progress"]


def refuses(rig: Pipeline) -> bool:
    """Whether Redis takes no write, or is not there."""
    try:
        return not rig.deployment.client.set("chaos:written", 1, px=1)
    except (RedisError, OSError):
        return True


def answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except RedisError:
        return False
