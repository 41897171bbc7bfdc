"""What a scan of a board goes by: the margin of posts known in a row, and the posts that are no longer listed."""

from __future__ import annotations

import pytest
import redis

from store.workshop import Workshop, payloads
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.store.status import run_books
from threadmill.store.work import Child, Met, When


@pytest.fixture
def board(client: redis.Redis) -> Workshop:
    """The list stage."""
    return Workshop(client, LIST)


def post(key: str) -> Task:
    return Task(stage="detail", source="bbs", key=key, parent="7", depth=1)


def scan(board: Workshop, *posts: str, margin: int = 0, met: Met = Met.NO) -> list[bytes]:
    """Scan a page of board 7 that lists these posts; answers the follow-ups that were queued, and takes them."""
    board.start("7", b"page 1", job="j1")
    follow_up = Child(b"page 2", "", when=When.SOMETHING_NEW, margin=margin)
    assert board.commit(board.lease_one(), key="7", subtasks=[post(p) for p in posts], children=[follow_up], met=met).ok
    queued = board.lease(5)
    for lease in queued:
        board.commit(lease, key="7", met=met)
    return payloads(queued)


def handed_down(board: Workshop) -> list[tuple[str, bool]]:
    tasks = [
        Task.from_fields(fields, source="bbs", stage="detail", entry_id=entry_id)
        for entry_id, fields in board.client.xrange(board.lane.stage("detail").tasks)
    ]
    board.client.xtrim(board.lane.stage("detail").tasks, maxlen=0, approximate=False)
    return [(task.key, task.force) for task in tasks]


@pytest.mark.parametrize(
    ("listed", "margin", "goes_on"),
    [
        (["new", "k1", "k2", "k3"], 0, True),
        (["new", "k1", "k2", "k3"], 4, True),
        (["new", "k1", "k2", "k3"], 3, False),
        (["k1", "k2", "k3", "new"], 1, True),
        (["k1", "new", "k2", "k3"], 2, False),
        (["k1", "k2", "k3"], 9, False),
    ],
)
def test_a_scan_stops_after_so_many_known_posts_in_a_row(
    board: Workshop, listed: list[str], margin: int, goes_on: bool
) -> None:
    # Given three posts that are known
    scan(board, "k1", "k2", "k3")
    # When a page lists them, and perhaps a new one; then the scan goes on unless `margin` known ones end the page
    assert scan(board, *listed, margin=margin) == ([b"page 2"] if goes_on else [])


def test_a_whole_scan_asks_for_the_posts_that_are_no_longer_listed(board: Workshop) -> None:
    # Given a board that listed three posts, and a fourth in a later scan
    scan(board, "a", "b", "c", met=Met.COMPARE)
    scan(board, "d", "a", met=Met.REMEMBER)
    handed_down(board)
    # When a whole scan meets two of them no more
    scan(board, "e", "d", "b", met=Met.COMPARE)
    # Then those two are asked for, known or not, and the job and the books count them
    new, *missing = handed_down(board)
    assert (new, sorted(missing)) == (("e", False), [("a", True), ("c", True)])
    assert run_books(board.client, board.lane, "detail").accepted == 7
    assert board.job("j1").accepted["detail"] == 7
    # And they are asked for once; nothing is left of the scan
    scan(board, "e", "d", "b", met=Met.COMPARE)
    assert handed_down(board) == []
    assert [key for key in board.client.keys("*met:*") if b":r:" in key] == []


def test_a_whole_scan_of_several_pages_compares_at_its_end(board: Workshop) -> None:
    # Given a board of three known posts; when a whole scan lists two of them on two pages
    scan(board, "a", "b", "c", met=Met.COMPARE)
    handed_down(board)
    board.start("7", b"page 1")
    page_2 = Child(b"page 2", "")
    board.commit(board.lease_one(), key="7", subtasks=[post("a")], children=[page_2], met=Met.COMPARE)
    assert handed_down(board) == []
    board.commit(board.lease_one(), key="7", subtasks=[post("c")], met=Met.COMPARE)
    # Then only the third is asked for
    assert handed_down(board) == [("b", True)]


def test_boards_that_need_not_notice_remember_nothing(board: Workshop) -> None:
    scan(board, "a", "b")
    assert board.client.keys("*met:*") == []
