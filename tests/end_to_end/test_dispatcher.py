"""The dispatcher as a process: it reads its file, is told to read it again, outlives Redis, and stops."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from redis.exceptions import RedisError

from end_to_end.dispatchers import boards_file
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.board import Board
from threadmill.model.interval import Every
from threadmill.ops import board_list, boards
from threadmill.ops.health import is_healthy
from waiting import wait_for

TINY = ["--forums", "5", "--pages-per-forum", "1", "--posts-per-page", "2", "--mean-comments", "0"]


def scans(rig: Pipeline, board: str) -> int:
    """How often the first page of a board was asked for."""
    return rig.hits().get(f"/BBS/list/{board}/1", 0)


def alive(rig: Pipeline) -> int:
    try:
        return int(rig.deployment.client.zcard(rig.lane.dispatchers))
    except RedisError:
        return 0


def test_boards_are_scanned_from_a_file_and_by_hand(tmp_path: Path) -> None:
    file = boards_file(tmp_path, ["1", "2"], every="1s", full_every="1d")
    with pipeline(tmp_path, forum=TINY, boards=file) as rig:
        # Given a dispatcher with two boards in its file, and a list scanner
        rig.start("list", writer=False)
        rig.fleet.scale("dispatcher", 1)
        # Then both are scanned again and again
        wait_for(lambda: min(scans(rig, "1"), scans(rig, "2")) >= 2, what="two scans of each")
        assert is_healthy(rig.deployment, "dispatcher")
        # When one is added by hand, and the file is read again with another one in place of the first
        boards.put(rig.deployment, [Board("bbs", "3", Every(1), live=True)])
        boards_file(tmp_path, ["2", "4"], every="1s")
        (pid,) = rig.fleet.pids("dispatcher")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: scans(rig, "3") and scans(rig, "4"), what="the new ones to be scanned")
        # Then the one that left the file is gone, and the one added by hand stayed
        assert {row.id for row in board_list.rows(rig.deployment)} == {"2", "3", "4"}
        # When the file is spoilt, and Redis is killed and comes back
        file.write_text("[[board]]\n")
        os.kill(pid, signal.SIGHUP)
        log = rig.fleet.logs / "dispatcher-1.log"
        wait_for(lambda: "it names no board" in log.read_text(), what="the mistake to be told")
        rig.redis.kill()
        wait_for(lambda: "Redis failed" in log.read_text(), what="the dispatcher to notice")
        rig.redis.start()
        # Then the same process goes on with the boards as they were
        wait_for(lambda: alive(rig), what="Redis")
        before = scans(rig, "2")
        wait_for(lambda: scans(rig, "2") > before, what="it to go on")
        assert rig.fleet.pids("dispatcher") == [pid]
        # When it is told to stop; then it does so at once, and leaves nothing of itself behind
        began = time.monotonic()
        rig.fleet.scale("dispatcher", 0)
        wait_for(lambda: not alive(rig), 5, what="it to leave")
        assert time.monotonic() - began < 2
        assert not is_healthy(rig.deployment, "dispatcher")
