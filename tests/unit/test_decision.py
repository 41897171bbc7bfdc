"""What the dispatcher does with a board that it looks at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dispatcher.decision import LOOK_MS, decide, put_off
from threadmill.model.board import Board
from threadmill.model.interval import Adaptive, Every
from threadmill.store.schedule import Change, Look, Read, Scan

NOW_MS = 1_800_000_000_000
EVERY = Board("bbs", "7", Every(600))
ADAPTIVE = Board("bbs", "7", Adaptive(60, 3600))


def look(board: Board, due_ms: int, *, scanning: bool = False, brought: int | None = None, dead: bool = False) -> Look:
    return Look(Read(board.id, b"%d" % due_ms, board.to_json()), scanning, brought, dead)


def scanned(board: Board, ago_ms: int, number: int = 2) -> Board:
    """The board with a scan that was dispatched a while ago, and which nobody has looked at yet."""
    board = board.dispatched("j1", at_ms=NOW_MS - ago_ms, due_ms=NOW_MS - ago_ms)
    return replace(board, last=replace(board.last, number=number))


def read(change: Change) -> Board:
    """The board as it is to be written."""
    return Board.from_json(change.entry, source="bbs", id="7")


def test_a_board_that_is_due_is_scanned() -> None:
    # Given a board that became due three seconds ago
    decided = decide("bbs", look(EVERY, NOW_MS - 3000), NOW_MS)
    # Then it is scanned under a job of its own, is due again at its next time, and is looked at before that
    assert isinstance(decided, Scan)
    board = read(decided.change)
    assert decided.task == board.task()
    assert (board.last.job, board.last.late_ms, board.last.number) == (decided.task.job, 3000, 1)
    assert decided.change.due_ms == board.due_next()
    assert decided.change.look_ms == min(board.due_next(), NOW_MS + LOOK_MS)
    assert decided.last_job == ""


def test_a_scan_that_is_over_is_written_down_before_the_board_is_due_again() -> None:
    # Given a board that is looked at a minute after its scan began
    board = scanned(EVERY, 60_000)
    due_ms = board.due_next()
    decided = decide("bbs", look(board, due_ms, brought=3), NOW_MS)
    # Then it is known what the scan brought, and it is looked at when it is due
    assert isinstance(decided, Change)
    assert (read(decided).last.brought, read(decided).last.open) == (3, False)
    assert (decided.due_ms, decided.look_ms) == (due_ms, due_ms)


@pytest.mark.parametrize(("brought", "due_in_ms"), [(0, 60_000), (5, 0), (3, 17_000)])
def test_what_a_scan_brought_moves_an_adaptive_board(brought: int, due_in_ms: int) -> None:
    # Given an adaptive board of one minute, a minute after its scan was dispatched
    board = scanned(ADAPTIVE, 60_000)
    decided = decide("bbs", look(board, NOW_MS, brought=brought), NOW_MS)
    # Then it waits on if the scan brought little, or is scanned
    if due_in_ms:
        assert isinstance(decided, Change)
        assert (decided.due_ms, decided.look_ms) == (NOW_MS + due_in_ms, NOW_MS + due_in_ms)
    else:
        assert isinstance(decided, Scan)


def test_a_board_that_brings_much_is_scanned_sooner_and_is_not_late_for_that() -> None:
    # Given a board at its longest interval, whose scan a minute ago brought a hundred posts
    board = scanned(replace(ADAPTIVE, last=replace(ADAPTIVE.last, pace_s=120)), 60_000)
    decided = decide("bbs", look(board, board.due_next(), brought=100), NOW_MS)
    # Then it is scanned at once, at a quarter of the interval's bounds
    assert isinstance(decided, Scan)
    assert (read(decided.change).last.late_ms, read(decided.change).last.pace_s) == (0, 60)


def test_who_made_a_board_due_at_another_time_meant_that() -> None:
    # Given an adaptive board that an operator made due now, and whose last scan brought nothing
    board = scanned(ADAPTIVE, 10_000)
    assert isinstance(decide("bbs", look(board, NOW_MS, brought=0), NOW_MS), Scan)


@pytest.mark.parametrize(("late_ms", "again_ms"), [(0, 1000), (4000, 1000), (40_000, 10_000), (3_600_000, 30_000)])
def test_a_board_that_is_being_scanned_is_looked_at_again(late_ms: int, again_ms: int) -> None:
    # Given a board that is due, and whose last scan is under way
    board = scanned(EVERY, 600_000)
    decided = decide("bbs", look(board, NOW_MS - late_ms, scanning=True), NOW_MS)
    # Then it stays due, is counted, and is looked at again the later the longer it has waited
    assert decided == Change(
        look(board, NOW_MS - late_ms).board, board.to_json(), NOW_MS - late_ms, NOW_MS + again_ms, "skipped_busy"
    )


def test_a_board_that_is_being_scanned_and_not_due_is_no_matter() -> None:
    board = scanned(EVERY, 60_000)
    decided = decide("bbs", look(board, NOW_MS + 90_000, scanning=True), NOW_MS)
    assert isinstance(decided, Change)
    assert (decided.due_ms, decided.look_ms, decided.counter) == (NOW_MS + 90_000, NOW_MS + LOOK_MS, "")


@pytest.mark.parametrize(
    "entry", [b"", *(replace(EVERY, **off).to_json() for off in ({"enabled": False}, {"paused": True}))]
)
def test_what_is_no_more_to_be_scanned_leaves_the_schedule(entry: bytes) -> None:
    read_so = Read("7", b"5", entry)
    assert decide("bbs", Look(read_so, False, None, False), NOW_MS) == Change(read_so, entry, None)


def test_an_entry_that_cannot_be_read_stays_and_is_looked_at_later() -> None:
    unreadable = Look(Read("7", b"5", b"no JSON"), False, None, False)
    with pytest.raises(ValueError, match="board 7 of bbs"):
        decide("bbs", unreadable, NOW_MS)
    assert put_off(unreadable, NOW_MS) == Change(unreadable.board, b"no JSON", 5, NOW_MS + 60_000)
