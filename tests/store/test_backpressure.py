"""Backpressure: a stage leases nothing while what it fills is above its high mark, and goes on below the low one."""

from __future__ import annotations

import itertools

import pytest
import redis

from store.workshop import Workshop
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.store.status import run_books
from threadmill.store.work import Leased, Marks

POSTS = 20
MARKS = Marks(backlog_high=100, backlog_low=40)


class Boards(Workshop):
    """The list stage, whose pages hand twenty posts down each."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, LIST)
        self._posts = itertools.count(1)
        self.detail = Workshop(client)

    def scan(self, leased: Leased) -> None:
        for lease in leased.leases:
            posts = [Task(stage="detail", source="bbs", key=str(next(self._posts))) for _ in range(POSTS)]
            assert self.commit(lease, subtasks=posts).ok

    @property
    def backlog(self) -> int:
        return run_books(self.client, self.lane, "detail").open

    def work_off(self, left: int) -> None:
        """The detail collector admits and does posts until so many are left."""
        for entry in self.detail.read(count=self.backlog - left):
            assert self.detail.admit(entry, b"post") == 1
            self.detail.commit(self.detail.lease_one())


@pytest.fixture
def boards(client: redis.Redis) -> Boards:
    boards = Boards(client)
    boards.queue(*(b"page" for _ in range(500)))
    boards.scan(boards.ask(1))  # so that it is known what a page brings
    return boards


def test_a_stage_is_held_before_the_backlog_passes_the_high_mark(boards: Boards) -> None:
    # Given a backlog of one page's posts; when the list stage takes all it may, again and again
    for _ in range(10):
        leased = boards.ask(50, marks=MARKS)
        boards.scan(leased)
        # Then the backlog stays at or below the mark
        assert boards.backlog <= MARKS.backlog_high
    # And the stage says what it waits for
    assert (leased.leases, leased.state) == ([], "held:detail")
    assert boards.books.held == "detail"
    assert boards.backlog > MARKS.backlog_low


def test_pages_under_way_count_for_what_they_will_bring(boards: Boards) -> None:
    # Given four pages with workers, which will bring 80 posts; when more are asked for; then none are given
    first = boards.ask(50, marks=MARKS)
    assert len(first.leases) == 4
    second = boards.ask(50, marks=MARKS)
    assert (second.leases, second.state) == ([], "")
    assert second.look_again_ms > 0


def test_it_goes_on_below_the_low_mark_and_not_before(boards: Boards) -> None:
    # Given a stage that is held
    boards.scan(boards.ask(50, marks=MARKS))
    assert boards.ask(50, marks=MARKS).state == "held:detail"
    # When the backlog is worked off to above the low mark; then it is still held
    boards.work_off(60)
    assert boards.ask(50, marks=MARKS).state == "held:detail"
    # When it reaches it; then the stage goes on, and says so
    boards.work_off(40)
    leased = boards.ask(50, marks=MARKS)
    assert (len(leased.leases), leased.state) == (3, "")
    assert boards.books.held == ""


def test_a_mark_below_what_one_page_brings_lets_one_page_through(boards: Boards) -> None:
    boards.work_off(0)
    leased = boards.ask(50, marks=Marks(backlog_high=5, backlog_low=0))
    assert len(leased.leases) == 1


def test_items_that_no_store_takes_hold_every_stage(boards: Boards) -> None:
    # Given as many pages with items as the mark allows, and nobody who stores them
    marks = Marks(items_high=3, items_low=1)
    for lease in boards.lease(3):
        boards.commit(lease, items=[b"{}"])
    # When work is asked for; then it is held
    assert boards.ask(5, marks=marks).state == "held:items"
    # And goes on when a store has them
    boards.client.xtrim(boards.lane.items, maxlen=1, approximate=False)
    assert (len(boards.ask(5, marks=marks).leases), boards.books.held) == (2, "")


def test_without_marks_nothing_is_held(boards: Boards) -> None:
    leased = boards.ask(200)
    assert (len(leased.leases), leased.state) == (200, "")


@pytest.mark.parametrize(("field", "state"), [("paused", "paused"), ("draining", "draining")])
def test_a_call_for_nothing_tells_what_operators_want(boards: Boards, field: str, state: str) -> None:
    # Given what an operator said; when a worker asks for no work at all; then it hears it
    boards.client.hset(boards.keys.control, mapping={field: "1", "concurrency": "3"})
    told = boards.ask(0)
    assert (told.leases, told.state, told.concurrency) == ([], state, 3)
