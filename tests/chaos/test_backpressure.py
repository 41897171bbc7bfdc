"""A stage that stands still: those above it stop in time, Redis does not grow, and all is made up for when it goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from waiting import wait_for

WIDE = ["--forums", "10", "--pages-per-forum", "3", "--posts-per-page", "20", "--mean-comments", "2"]
"""600 posts."""
FORUMS = [str(number) for number in range(1, 11)]
HIGH, LOW = 200, 60
CONCURRENCY = 16


def backlog(rig: Pipeline) -> int:
    books = rig.books("detail")
    return int(books["tasks"]) + int(books["requests"]) + int(books["leased"])


def listed(rig: Pipeline) -> int:
    return sum(number for path, number in rig.hits().items() if "/list/" in path)


def memory(rig: Pipeline) -> int:
    return int(rig.deployment.client.info("memory")["used_memory"])


@pytest.mark.scenario(27)
@pytest.mark.parametrize("seconds", [3, pytest.param(120, marks=pytest.mark.chaos)])
def test_while_detail_stands_still_the_list_scan_waits_and_redis_does_not_grow(tmp_path: Path, seconds: float) -> None:
    # Given boards that are scanned, and no detail collector
    with pipeline(tmp_path, forum=WIDE, backlog_high=HIGH, backlog_low=LOW) as rig:
        rig.start("list")
        job = rig.submit("list", FORUMS).job
        # When the posts waiting for it come near the mark
        wait_for(lambda: rig.books("list")["held"] == "detail", what="the list stage to be held")
        # Then the scan stands still for as long as it lasts: no page is asked for, the queue stays under the mark, and
        # Redis needs no more memory
        pages, bytes_used, until = listed(rig), memory(rig), time.monotonic() + seconds
        most_waiting = most_bytes = 0
        while time.monotonic() < until:
            most_waiting, most_bytes = max(most_waiting, backlog(rig)), max(most_bytes, memory(rig))
            time.sleep(0.2)  # the time that is watched
        assert most_waiting <= HIGH
        assert listed(rig) == pages
        assert most_bytes < bytes_used + 100_000
        # And when details are collected again, so is all the rest
        rig.start("detail", "comment")
        rig.wait_until_done(job, seconds=120)
        assert rig.books("list")["held"] == ""
        assert_whole(rig, job)


@pytest.mark.scenario(27)
@pytest.mark.chaos
def test_while_no_store_takes_items_no_stage_goes_on(tmp_path: Path) -> None:
    # Given a crawl, and nobody who stores what it brings
    with pipeline(tmp_path, forum=WIDE, items_high=100, items_low=20) as rig:
        rig.start(writer=False)
        job = rig.submit("list", FORUMS).job
        # When the item stream comes to its mark; then the stages that bring items stop there
        wait_for(lambda: rig.books("detail")["held"] == "items", what="the detail stage to be held")
        wait_for(lambda: rig.books("comment")["leased"] == rig.books("detail")["leased"] == 0, what="pages to end")
        # (each counts its own pages under way, and not another's)
        assert rig.deployment.client.xlen(rig.lane.items) <= 100 + CONCURRENCY
        # And go on when they are stored
        rig.fleet.scale("item_writer", 1)
        rig.wait_until_done(job)
        assert_whole(rig, job)
