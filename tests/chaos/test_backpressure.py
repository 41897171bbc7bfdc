"""A stage that stands still: those above it stop in time, Redis does not grow, and all is made up for later."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.ledger import Tally, note
from chaos.oracle import assert_whole
from end_to_end.dispatchers import boards_file
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.ops import boards, report
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


def nothing_open(books: dict[str, Any]) -> bool:
    return not any(books[name] for name in ("tasks", "requests", "leased", "delayed"))


@pytest.mark.scenario(28)
@pytest.mark.parametrize("seconds", [3, pytest.param(120, marks=pytest.mark.chaos)])
def test_while_detail_stands_still_the_list_scan_waits_and_redis_does_not_grow(
    tmp_path: Path, seconds: float, record_property: Callable[[str, object], None]
) -> None:
    # Given boards that are scanned every two seconds, and no detail collector
    file = boards_file(tmp_path, FORUMS, every="2s")
    with pipeline(tmp_path, forum=WIDE, boards=file, backlog_high=HIGH, backlog_low=LOW) as rig:
        rig.start("list")
        rig.fleet.scale("dispatcher", 1)
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
        # And the boards are late, as the status says
        late_ms = report.status(rig.deployment)["sources"]["bbs"]["schedule"]["lateness_ms"]
        assert late_ms > 1000 * (seconds - 2)
        # And when details are collected again, so is all the rest
        rig.start("detail", "comment")
        wait_for(lambda: rig.books("list")["held"] == "" and rig.check().ok, 120, every=1, what="all to be collected")
        boards.pause(rig.deployment, rig.deployment.source(None), FORUMS)
        wait_for(lambda: all(nothing_open(rig.books(stage)) for stage in STAGES), what="the last scans to end")
        assert rig.check().ok
        note(Tally())
        record_property("most waiting", most_waiting)
        record_property("memory grew (B)", max(0, most_bytes - bytes_used))
        record_property("latest board (s)", round(late_ms / 1000))


@pytest.mark.scenario(28)
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
