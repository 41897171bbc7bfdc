"""Clocks that are wrong, or jump: time is Redis's alone, so nothing is lost, taken too early or held too long."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import datetime
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from waiting import wait_for

HOUR_S = 3600
FORUM = ["--forums", "2", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "4"]
FORUM += ["--latency-ms", "100", "--error-rate", "0.2"]
"""Errors make workers wait, and say so in their logs."""
SETTINGS = {"lease_ttl_ms": 10_000, "concurrency": 4, "retry_base_ms": 200, "retry_max_ms": 400}


@pytest.mark.scenario(20)
@pytest.mark.chaos
def test_workers_whose_clocks_are_an_hour_fast_or_slow(tmp_path: Path) -> None:
    # Given one worker of each stage an hour fast, one an hour slow, and a fast item writer
    with pipeline(tmp_path, forum=FORUM, **SETTINGS) as rig:
        for number, shift in enumerate(("+1h", "-1h"), 1):
            rig.fleet.environment |= faked(FAKETIME=shift)
            for stage in STAGES:
                rig.scale(stage, number)
        rig.fleet.environment |= faked(FAKETIME="+1h")
        rig.fleet.scale("item_writer", 1)
        wait_for(lambda: all(rig.books(stage)["workers"] == 2 for stage in STAGES), what="all to be at work")
        # When they collect together
        job = rig.submit("list", ["1", "2"]).job
        rig.wait_until_done(job)
        # Then nobody took another's pages, all is there once, dated by Redis, and the clocks were what they should be
        assert_whole(rig, job)
        assert_untouched(rig)
        for service in (stage.service for stage in STAGES.values()):
            assert errors_s(rig, f"{service}-1")[-1] == pytest.approx(HOUR_S, abs=60)
            assert errors_s(rig, f"{service}-2")[-1] == pytest.approx(-HOUR_S, abs=60)
        assert errors_s(rig, "item_writer-1")[-1] == pytest.approx(HOUR_S, abs=60)


@pytest.mark.scenario(20)
@pytest.mark.chaos
def test_clocks_that_jump_to_and_fro_during_the_crawl(tmp_path: Path) -> None:
    # Given services whose clock is what a file says
    clock = tmp_path / "clock"
    clock.write_text("+1h\n")
    with pipeline(tmp_path, forum=FORUM, **SETTINGS) as rig:
        rig.fleet.environment |= faked(FAKETIME_TIMESTAMP_FILE=str(clock), FAKETIME_NO_CACHE="1")
        rig.start()
        rig.scale("detail", 2)
        job = rig.submit("list", ["1", "2"]).job
        wait_for(lambda: rig.books("detail")["done"] > 3, what="posts to be collected")
        # When it jumps by two hours, back and forth, while they work
        for shift in cycle(("-1h\n", "+1h\n")):
            new = tmp_path / "clock.new"  # written aside: half a file must not be read
            new.write_text(shift)
            new.replace(clock)
            time.sleep(0.5)  # a time for the services to live in
            if rig.job(job).finished:
                break
        rig.wait_until_done(job)
        # Then nobody took another's pages, all is there once, dated by Redis, and the clocks did jump
        assert_whole(rig, job)
        assert_untouched(rig)
        errors = [error for log in rig.fleet.logs.iterdir() for error in errors_s(rig, log.stem)]
        assert max(errors) - min(errors) > 1.9 * HOUR_S


def faked(**settings: str) -> dict[str, str]:
    """An environment with libfaketime (group `chaos`), which leaves the monotonic clock alone."""
    library = files("libfaketime") / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    return {"LD_PRELOAD": str(library), "DONT_FAKE_MONOTONIC": "1", **settings}


def errors_s(rig: Pipeline, name: str) -> list[float]:
    """By how much each time in a service's log differs from the time, the log file's, when it last wrote; s."""
    log = rig.fleet.logs / f"{name}.log"
    stamps = [line.split(" ", 1)[0] for line in log.read_text().splitlines() if line[:2] == "20"]
    return [datetime.fromisoformat(stamp).timestamp() - log.stat().st_mtime for stamp in stamps]


def assert_untouched(rig: Pipeline) -> None:
    """No lease was taken from a living worker, and every row is dated within five minutes of now."""
    client: Any = rig.deployment.client
    for stage in STAGES:
        stats = client.hmget(rig.lane.stage(stage).stats, "reclaimed", "fenced")
        assert stats == [None, None], f"{stage}: reclaimed, fenced: {stats}"
    with closing(sqlite3.connect(rig.database)) as connection:
        for table in ("posts", "comments"):
            for (text,) in connection.execute(f"SELECT collected_at FROM {table}"):
                assert datetime.fromisoformat(text).timestamp() == pytest.approx(time.time(), abs=300)
