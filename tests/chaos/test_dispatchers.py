"""Dispatchers are killed while boards are scanned: each is scanned on time, and none twice at once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from demo_forum.config import ForumConfig
from end_to_end.dispatchers import boards_file
from end_to_end.pipeline import Pipeline, pipeline
from end_to_end.watched_forum import Visit, WatchedForum
from threadmill.ops import board_list, fleet
from threadmill.store.schedule import schedule_books
from waiting import wait_for

BOARDS = [str(n) for n in range(1, 31)]
EVERY_S = 4
SECONDS = 60
SCAN_S = 1.2
"""How long the site takes for a board: a second dispatch in that time would be seen as two scans at once."""
KILL_EVERY_S = (2.0, 4.0)


@pytest.mark.chaos
@pytest.mark.scenario(27)
def test_of_three_dispatchers_that_are_killed_each_board_is_scanned_on_time_and_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr(fleet, "RESTART_S", (0.1, 0.5))
    file = boards_file(tmp_path, BOARDS, every=f"{EVERY_S}s")
    forum = ForumConfig(forums=len(BOARDS), pages_per_forum=1, posts_per_page=2, mean_comments=0)
    with (
        WatchedForum(forum, latency_ms=SCAN_S * 1000) as watched,
        pipeline(tmp_path, forum=["--forums", "1"], boards=file, base_url=watched.url, concurrency=64) as rig,
    ):
        # Given thirty boards, three dispatchers, and a site that takes its time
        rig.start("list", writer=False)
        rig.fleet.scale("dispatcher", 3)
        visits = {board: watched.visits[f"/BBS/list/{board}/1"] for board in BOARDS}
        wait_for(lambda: all(visits.values()), what="the first scan of each")
        # When one of the three is killed every few seconds
        began = time.monotonic()
        kills = kill_now_and_then(rig, random.Random(seed))
        ended = time.monotonic()
        # Then each board was scanned at its times, and never twice at once
        late = max(lateness(seen) for seen in visits.values())
        for board, seen in visits.items():
            assert all(later.came_s >= one.left_s for one, later in pairwise(seen)), f"board {board} twice at once"
            during = sum(began <= visit.came_s < ended for visit in seen)
            # (one at either edge of the time may be in or out)
            assert abs(during - (ended - began) / EVERY_S) < 1.5, f"board {board} was scanned {during} times"
        assert late < 1.5
        # And what the site saw is what the books say
        wait_for(lambda: all_counted(rig), what="the books to agree")
        assert rig.books("list")["dead"] == 0
        stats = schedule_books(rig.deployment.client, [rig.lane])
        record_property("kills", kills)
        record_property("scans", sum(map(len, visits.values())))
        record_property("latest (s)", round(late, 2))
        record_property("late on average (s)", round(stats.late_ms / stats.dispatched / 1000, 3))


def kill_now_and_then(rig: Pipeline, dice: random.Random) -> int:
    """Kill one of the dispatchers every few seconds, and start it again; how many were killed."""
    end = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < end:
        os.kill(dice.choice(rig.fleet.pids("dispatcher")), signal.SIGKILL)
        kills += 1
        pause = time.monotonic() + dice.uniform(*KILL_EVERY_S)  # the moment of the next kill
        wait_for(lambda pause=pause: rig.fleet.tend() is not None and time.monotonic() > pause, every=0.05)
    return kills


def all_counted(rig: Pipeline) -> bool:
    """Whether what the dispatchers counted, the boards and the stage agree; now and then something is under way."""
    dispatched = schedule_books(rig.deployment.client, [rig.lane]).dispatched
    numbers = [row.board.last.number for row in board_list.rows(rig.deployment) if row.board]
    return dispatched == sum(numbers) == rig.books("list")["accepted"]


def lateness(visits: list[Visit]) -> float:
    """How much later than its time a scan began, at most: its times are `EVERY_S` apart.

    The first scans are of all boards at once, and some wait for others.
    """
    times = [visit.came_s for visit in visits[3:]]
    offsets = [at - number * EVERY_S for number, at in enumerate(times)]
    return max(offsets) - min(offsets)
