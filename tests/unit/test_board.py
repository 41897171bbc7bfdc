"""Boards: as JSON, what a scan changes about them, and the boards file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

from threadmill.model.board import Board, LastScan
from threadmill.model.boards_file import read_boards
from threadmill.model.errors import ConfigError
from threadmill.model.interval import Adaptive, Cron, Every
from threadmill.model.source import Source, load_source

DAY_MS = 86_400_000
BOARD = Board("bbs", "7", Every(600))


# JSON -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "board",
    [
        BOARD,
        Board("bbs", "게시판", Cron("0 4 * * *", "Asia/Seoul"), {"slug": "x", "a": "b"}, -3, 86_400, False, True, True),
        Board("bbs", "7", Adaptive(60, 3600), last=LastScan("j", 3, 5, 6, True, True, 0, True, 9, True, 120)),
        BOARD.dispatched("j1", at_ms=5, due_ms=3),
    ],
)
def test_a_board_comes_back_from_json_as_it_was(board: Board) -> None:
    data = board.to_json()
    assert Board.from_json(data, source=board.source, id=board.id) == board
    assert Board.from_json(data, source=board.source, id=board.id).to_json() == data


def test_a_plain_board_costs_a_few_bytes() -> None:
    assert BOARD.to_json() == b'{"every":"10m"}'


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"7", b"{}", b'{"every":"soon"}', b'{"every":5}', b'{"every":"1m","surprise":1}',
        b'{"every":"1m","priority":"high"}', b'{"every":"1m","priority":9999999}', b'{"every":"1m","enabled":1}',
        b'{"every":"1m","last":{"at_ms":"x"}}', b'{"every":"1m","last":{"surprise":1}}', b'{"every":"1m","last":[]}',
        b'{"adaptive":{}}', b'{"adaptive":5}', b'{"every":"1m","params":7}', b"\xff\xfe",
    ],
)  # fmt: skip
def test_an_entry_that_is_no_board_is_named(data: bytes) -> None:
    with pytest.raises(ValueError, match="board 7 of bbs cannot be read"):
        Board.from_json(data, source="bbs", id="7")


# Scans ----------------------------------------------------------------------------------------------------------------


def test_a_dispatched_board_knows_its_scan() -> None:
    board = replace(BOARD, params={"slug": "x"}, priority=4).dispatched("j1", at_ms=5000, due_ms=3000)
    assert board.last == LastScan("j1", 1, 5000, 2000, open=True)
    task = board.task()
    assert (task.stage, task.source, task.key, task.params) == ("list", "bbs", "7", {"slug": "x"})
    assert (task.job, task.priority, task.full) == ("j1", 4, False)


def test_the_first_scan_changes_no_pace_and_later_ones_do() -> None:
    board = Board("bbs", "7", Adaptive(60, 3600))
    for brought, pace_s in ((500, 0), (0, 120), (0, 240), (20, 120)):
        board = board.dispatched("j", at_ms=board.due_next() or 1000, due_ms=0).looked_at(brought, dead=False)
        assert (board.last.pace_s, board.last.brought) == (pace_s, brought)
        assert board.due_next() == board.last.at_ms + max(60, pace_s) * 1000


@pytest.mark.parametrize(("brought", "dead"), [(None, False), (0, True), (100, True)])
def test_a_scan_that_failed_or_that_nobody_knows_of_changes_no_pace(brought: int | None, dead: bool) -> None:
    board = Board("bbs", "7", Adaptive(60, 3600), last=LastScan("j", 5, 1000, open=True, pace_s=500))
    board = board.looked_at(brought, dead=dead)
    assert (board.last.pace_s, board.last.open) == (500, False)


def test_whole_scans_come_as_often_as_asked_and_the_first_is_one() -> None:
    # Given a board scanned every ten minutes for three days, whole once a day
    board, at_ms, full = Board("bbs", "7", Every(600), full_every_s=86_400), 1000, []
    while at_ms < 3 * DAY_MS:
        board = board.dispatched("j", at_ms=at_ms, due_ms=at_ms)
        if board.last.full:
            full.append(at_ms)
        at_ms = board.due_next()
    # Then one scan a day is whole, from the second at the board's own time of the day
    assert len(full) in (3, 4)
    assert full[0] == 1000
    assert all(abs(later - one - DAY_MS) <= 600_000 for one, later in pairwise(full[1:]))


def test_a_whole_scan_that_was_asked_for_comes_once() -> None:
    board = replace(BOARD, last=LastScan(full_next=True)).dispatched("j1", at_ms=5, due_ms=5)
    assert board.last.full
    assert not board.dispatched("j2", at_ms=9, due_ms=9).last.full


# The boards file ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sources() -> dict[str, Source]:
    bbs = load_source("bbs")
    return {"bbs": bbs, "other": bbs.model_copy(update={"name": "other"})}


def read(tmp_path: Path, text: str, sources: dict[str, Source]) -> list[Board]:
    file = tmp_path / "boards.toml"
    file.write_text(dedent(text))
    return read_boards(file, sources)


def test_entries_take_what_they_do_not_say_from_the_defaults(tmp_path: Path, sources: dict[str, Source]) -> None:
    boards = read(
        tmp_path,
        """
        [defaults]
        source = "bbs"
        every = "10m"
        timezone = "Asia/Seoul"
        full_every = "1d"
        priority = 2
        params = { a = "1", b = "1" }
        [[board]]
        ids = ["1", 2]
        [[board]]
        id = "3"
        cron = "0 4 * * *"
        priority = -1
        full_every = "1h"
        params = { b = "2" }
        enabled = false
        [[board]]
        source = "other"
        id = "1"
        adaptive = { min = "1m", max = "6h" }
        """,
        sources,
    )
    plain = Board("bbs", "1", Every(600), {"a": "1", "b": "1"}, 2, 86_400)
    assert boards == [
        plain,
        replace(plain, id="2"),
        Board("bbs", "3", Cron("0 4 * * *", "Asia/Seoul"), {"a": "1", "b": "2"}, -1, 3600, enabled=False),
        replace(plain, source="other", interval=Adaptive(60, 21_600)),
    ]


def test_a_file_without_boards_is_a_file_without_boards(tmp_path: Path, sources: dict[str, Source]) -> None:
    assert read(tmp_path, "# none yet\n", sources) == []
    assert read_boards(Path("deploy/boards.toml"), sources) == []


def test_many_thousand_boards_are_read(tmp_path: Path, sources: dict[str, Source]) -> None:
    ids = ", ".join(map(str, range(20_000)))
    boards = read(tmp_path, f'[[board]]\nsource = "bbs"\nevery = "1h"\nids = [{ids}]\n', sources)
    assert len(boards) == len({board.id for board in boards}) == 20_000


GOOD = '[[board]]\nsource = "bbs"\nid = "1"\nevery = "1m"\n'
MISTAKES = [
    ("[[board", "is not TOML"),
    ("surprise = 1", "surprise: there is no such key"),
    (GOOD + 'evry = "1m"', "entry 1, evry: there is no such key"),
    (GOOD + "[defaults]\nids = [1]", r"defaults\.ids: there is no such key"),
    (GOOD + "id2 = 1", "entry 1, id2"),
    ('[[board]]\nsource = "bbs"\nevery = "1m"', r"entry 1 \(no id\): it names no board"),
    ('[[board]]\nsource = "bbs"\nid = "1"', r"entry 1 \(1\): say how often"),
    ('[[board]]\nid = "1"\nevery = "1m"', "say which source: bbs, other"),
    ('[[board]]\nsource = "cnn"\nid = "1"\nevery = "1m"', "source 'cnn' is not configured"),
    (GOOD + GOOD, r"entry 2 \(1\): board 1 of bbs stands in entry 1 already"),
    (GOOD.replace('id = "1"', 'ids = ["1", "1"]'), "stands in entry 1 already"),
    (GOOD.replace('"1"', '"../../etc"'), r"entry 1 \(\.\./\.\./etc\): the key .* does not match"),
    (GOOD.replace('"1"', "true"), "entry 1, id"),
    (GOOD + 'cron = "* * * * *"', "exactly one"),
    (GOOD + 'timezone = "Asia/Seoul"', "goes with cron"),
    (GOOD + 'full_every = "often"', "entry 1 .*no duration"),
    (GOOD + "priority = 1000000", "priority lies between"),
    (GOOD + 'priority = "high"', "entry 1, priority"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_named_with_file_and_entry(
    tmp_path: Path, sources: dict[str, Source], text: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"boards\.toml.*{said}"):
        read(tmp_path, text, sources)


def test_a_file_that_is_not_there_is_named(tmp_path: Path, sources: dict[str, Source]) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml cannot be read"):
        read_boards(tmp_path / "nowhere.toml", sources)
