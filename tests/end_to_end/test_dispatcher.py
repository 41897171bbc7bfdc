"""The dispatcher as a process: boards from a file and by hand, the threshold, several replicas and kills."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from demo_forum.config import ForumConfig
from end_to_end.dispatchers import assert_one_at_a_time, board_rows, boards_file, gaps, schedule, threadmill
from end_to_end.pipeline import Pipeline, pipeline
from end_to_end.watched_forum import WatchedForum
from threadmill.ops import fleet
from waiting import wait_for

TINY = ["--forums", "10", "--pages-per-forum", "1", "--posts-per-page", "2", "--mean-comments", "0"]


def scans(rig: Pipeline) -> dict[str, int]:
    """How often the first page of each board was asked for."""
    return {path.split("/")[3]: n for path, n in rig.hits().items() if path.startswith("/BBS/list/")}


def dispatched(rig: Pipeline) -> int:
    return int(rig.deployment.client.hget(rig.lane.schedule_stats, "dispatched") or 0)


def test_boards_are_scanned_from_a_file_and_by_hand(tmp_path: Path) -> None:
    file = boards_file(tmp_path, ["1", "2"], every="1s", full_every="1d")
    with pipeline(tmp_path, forum=TINY, boards=file) as rig:
        # Given a dispatcher with two boards in its file, and a list scanner
        rig.start("list", writer=False)
        rig.fleet.scale("dispatcher", 1)
        # Then both are scanned again and again
        wait_for(lambda: min(scans(rig).get(board, 0) for board in "12") >= 2, what="two scans of each")
        # When another is added by hand, and the file is read again with another one in place of the first
        assert "2 of 2 boards" in threadmill(rig, "boards", "add", "3", "4", "--adaptive", "1s..1h", "--priority", "3")
        boards_file(tmp_path, ["2", "5"], every="1s")
        (pid,) = rig.fleet.pids("dispatcher")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: {"3", "4", "5"} <= scans(rig).keys(), what="the new ones to be scanned")
        # Then the one that left the file is gone, and those added by hand stayed
        rows = board_rows(rig)
        assert rows.keys() == {"2", "3", "4", "5"}
        assert rows["3"]["adaptive"] == {"min": "1s", "max": "1h"}
        assert [rows[board]["live"] for board in "2345"] == [False, True, True, False]
        wait_for(lambda: board_rows(rig)["5"]["last"]["brought"] is not None, what="what it brought to be seen")
        # When the file is spoilt; then the dispatcher says so and goes on
        file.write_text("[[board]]\n")
        os.kill(pid, signal.SIGHUP)
        log = rig.fleet.logs / "dispatcher-1.log"
        wait_for(lambda: "it names no board" in log.read_text(), what="the mistake to be told")
        before = scans(rig)["2"]
        wait_for(lambda: scans(rig)["2"] > before, what="it to go on")
        assert rig.fleet.pids("dispatcher") == [pid]
        # When it is told to stop; then it does so at once, and leaves nothing of itself behind
        began = time.monotonic()
        rig.fleet.scale("dispatcher", 0)
        wait_for(lambda: not rig.deployment.client.zcard(rig.lane.dispatchers), 5, what="it to leave")
        assert time.monotonic() - began < 2
        assert "no dispatcher runs" in threadmill(rig, "status")


def test_no_more_is_dispatched_than_the_threshold_allows(tmp_path: Path) -> None:
    file = boards_file(tmp_path, [str(n) for n in range(1, 11)], every="1h")
    with pipeline(tmp_path, forum=TINY, boards=file, threshold=3) as rig:
        # Given ten boards that are due, a threshold of three, two dispatchers, and no list scanner
        rig.fleet.scale("dispatcher", 2)
        wait_for(lambda: rig.books("list")["tasks"] == 3, what="three to be dispatched")
        client, stats = rig.deployment.client, rig.lane.schedule_stats
        looks = int(client.hget(stats, "skipped_full") or 0)
        wait_for(lambda: int(client.hget(stats, "skipped_full") or 0) >= looks + 3, what="them to look in vain")
        # Then three wait in the stage and seven on the schedule, which says how late they are
        assert rig.books("list")["accepted"] == 3
        state = schedule(rig)
        assert (state["boards"], state["due"], state["dispatched"], state["dispatchers"]) == (10, 7, 3, 2)
        assert state["lateness_ms"] > 1000
        assert len(json.loads(threadmill(rig, "boards", "list", "--late", "--json"))) == 7
        # When the list scanner comes
        rig.start("list", writer=False)
        # Then all are scanned, late, and each once
        wait_for(lambda: dispatched(rig) == 10 and rig.books("list")["done"] == 10, what="all to be scanned")
        assert scans(rig) == {str(n): 1 for n in range(1, 11)}
        state = schedule(rig)
        assert (state["due"], state["lateness_ms"]) == (0, 0)
        assert state["late_ms"] > 7000


def test_a_dispatcher_outlives_redis(tmp_path: Path) -> None:
    file = boards_file(tmp_path, ["1", "2", "3"], every="1s")
    with pipeline(tmp_path, forum=TINY, boards=file) as rig:
        # Given a dispatcher at work
        rig.start("list", writer=False)
        rig.fleet.scale("dispatcher", 1)
        wait_for(lambda: dispatched(rig) >= 3, what="the first scans")
        pids = rig.fleet.pids("dispatcher")
        # When Redis is killed, and comes back
        rig.redis.kill()
        log = rig.fleet.logs / "dispatcher-1.log"
        wait_for(lambda: "Redis failed" in log.read_text(), what="the dispatcher to notice")
        rig.redis.start()
        # Then the same process goes on
        before = dispatched_once_redis_answers(rig)
        wait_for(lambda: dispatched(rig) >= before + 3, what="more scans")
        assert rig.fleet.pids("dispatcher") == pids


def dispatched_once_redis_answers(rig: Pipeline) -> int:
    def answer() -> int | None:
        try:
            return dispatched(rig) or None
        except Exception:  # noqa: BLE001 - it is starting
            return None

    return wait_for(answer, what="Redis") or 0


def test_of_three_replicas_that_are_killed_each_board_is_scanned_on_time_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_while_scanning(tmp_path, monkeypatch, every_s=1, seconds=5, boards=6, kill_every_s=0.8)


def kill_while_scanning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, every_s: int, seconds: float, boards: int, kill_every_s: float
) -> dict[str, list[float]]:
    """Three dispatchers, one of them killed now and then; answers the gaps between scans, by board."""
    monkeypatch.setattr(fleet, "RESTART_S", (0.1, 0.5))
    ids = [str(n) for n in range(1, boards + 1)]
    file = boards_file(tmp_path, ids, every=f"{every_s}s")
    forum = ForumConfig(forums=boards, pages_per_forum=1, posts_per_page=2, mean_comments=0)
    latency_s = every_s * 0.3
    with (
        WatchedForum(forum, latency_ms=latency_s * 1000) as watched,
        pipeline(tmp_path, forum=["--forums", "1"], boards=file, base_url=watched.url) as rig,
    ):
        # Given three dispatchers, and a site whose answers take a third of the interval
        rig.start("list", writer=False)
        rig.fleet.scale("dispatcher", 3)
        visits = {board: watched.visits[f"/BBS/list/{board}/1"] for board in ids}
        wait_for(lambda: all(visits.values()), what="the first scan of each")
        # When one of them is killed every few moments
        began, kills = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            pids = wait_for(lambda: (rig.fleet.tend(), rig.fleet.pids("dispatcher"))[1], what="a dispatcher")
            os.kill(pids[kills % len(pids)], signal.SIGKILL)
            kills += 1
            time.sleep(kill_every_s)  # the moment of the next kill
        ended = time.monotonic()
        # Then each board was scanned at its times, and never twice at once
        expected = (ended - began) / every_s
        for board, seen in visits.items():
            assert_one_at_a_time(seen)
            during = [visit for visit in seen if began <= visit.came_s <= ended]
            assert expected - 2 <= len(during) <= expected + 1, (board, during)
            # The first scan is when the board is added; from then on it has times of its own.
            assert all(0.5 * every_s < gap < 1.5 * every_s + 0.5 for gap in gaps(seen[1:])), (board, gaps(seen))
        assert kills >= 3
        assert rig.books("list")["dead"] == 0
        return {board: gaps(seen[1:]) for board, seen in visits.items()}
