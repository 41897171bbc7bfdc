"""due, dispatch, plan, lateness: the schedule of a lane, and any number of dispatchers at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from store.workshop import Workshop
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.store.calls import run
from threadmill.store.clock import clock_ms
from threadmill.store.schedule import (
    Change,
    Dispatched,
    Due,
    Look,
    Read,
    Scan,
    Schedule,
    ScheduleBooks,
    alive,
    schedule_books,
)
from threadmill.store.work import Child, Park

HOUR_MS = 3_600_000
PLENTY = 1000


class Timetable:
    """The schedule of lane bbs.0, its verbs run at once, and the list stage beside it."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.shop = Workshop(client, LIST)
        self.schedule = Schedule(self.shop.lane)
        self.began_ms = clock_ms(client)

    def add(self, *ids: str, due_in_ms: int = -1000, entry: bytes = b"{}") -> None:
        at_ms = self.began_ms + due_in_ms
        assert all(self.plan(Change(Read(each), entry, at_ms, at_ms)) for each in ids)

    def plan(self, change: Change) -> bool:
        return run(self.client, self.schedule.plan([change]))[0]

    def due(self, *, threshold: int = PLENTY, want: int = 200, dispatcher: str = "d1") -> Due:
        return run(self.client, self.schedule.due(dispatcher, threshold=threshold, want=want))

    def look(self, board: str) -> Look:
        (look,) = [look for look in self.due().looks if look.board.id == board]
        return look

    def dispatch(self, *scans: Scan, threshold: int = PLENTY) -> list[Dispatched]:
        return run(self.client, self.schedule.dispatch(scans, threshold=threshold))

    def read(self, board: str) -> Read:
        (read,) = self.schedule.read(self.client, [board])
        return read

    @property
    def books(self) -> ScheduleBooks:
        return schedule_books(self.client, [self.shop.lane])

    def finish(self, *subtasks: str) -> None:
        """Admit the task that waits, and finish its one page, which hands these posts down."""
        (entry,) = self.shop.read()
        assert self.shop.admit(entry, b"page 1") == 1
        posts = [Task("detail", "bbs", key) for key in subtasks]
        assert self.shop.commit(self.shop.lease_one(), subtasks=posts).ok


def scan(look: Look, job: str = "j1", *, entry: bytes | None = None, last_job: str = "", in_ms: int = HOUR_MS) -> Scan:
    """What has the board scanned that was looked at."""
    due_ms = (look.board.due_ms or 0) + in_ms
    entry = entry if entry is not None else b'{"last":{"job":"%s"}}' % job.encode()
    task = Task("list", "bbs", look.board.id, priority=4, job=job, full=True)
    return Scan(Change(look.board, entry, due_ms, due_ms), task, last_job)


@pytest.fixture
def table(client: redis.Redis) -> Iterator[Timetable]:
    """A schedule, whose stage's books must be what is really there at the end."""
    table = Timetable(client)
    yield table
    table.shop.audit()


# due ------------------------------------------------------------------------------------------------------------------


def test_what_is_due_is_told_with_all_there_is_to_know(table: Timetable) -> None:
    # Given a board that is due, and one that is due in a minute
    table.add("7", entry=b'{"every":"1h"}')
    table.add("8", due_in_ms=60_000)
    # When a dispatcher looks
    due = table.due()
    # Then it sees the one, and when to look again
    assert due.looks == [Look(Read("7", b"%d" % (table.began_ms - 1000), b'{"every":"1h"}'), False, None, False)]
    assert (due.waiting, table.began_ms <= due.now_ms) == (1, True)
    assert 0 < due.next_ms <= 60_000


def test_an_empty_schedule_has_nothing_due(table: Timetable) -> None:
    assert table.due().looks == []
    assert table.due().next_ms == -1


def test_due_boards_come_by_priority_and_then_by_time(table: Timetable) -> None:
    # Given boards due at different times, some of a priority, one unreadable
    for board, late_ms, entry in (
        ("a", 1000, b'{"priority":-1}'), ("b", 2000, b"{}"), ("c", 3000, b"no JSON"), ("d", 10, b'{"priority":9}'),
        ("e", 4000, b'{"priority":9}'), ("f", 5000, b'{"priority":"x","last":7}'),
    ):  # fmt: skip
        table.add(board, due_in_ms=-late_ms, entry=entry)
    # When all are asked for, or three; then the larger priority is first, and of one priority what has waited longest
    assert [look.board.id for look in table.due().looks] == ["e", "d", "f", "c", "b", "a"]
    due = table.due(want=3)
    assert ([look.board.id for look in due.looks], due.waiting) == (["e", "d", "f"], 6)


def test_a_priority_that_changes_moves_the_board_to_its_place(table: Timetable, client: redis.Redis) -> None:
    # Given three boards, two of which change their priority: one by a plan, one by hand
    table.add("a", "b", "c", entry=b'{"priority":1}')
    read = table.read("b")
    assert table.plan(Change(read, b'{"priority":2}', read.due_ms, 5))
    client.hset(table.shop.lane.boards, "a", b'{"priority":-7}')
    # Then each comes in its place, now or after it was looked at, and once
    assert [look.board.id for look in table.due().looks] == ["b", "a", "c"]
    assert [look.board.id for look in table.due().looks] == ["b", "c", "a"]
    assert table.due().waiting == 3
    # And a priority that nobody has any more is forgotten
    assert table.plan(Change(table.read("b"), b"", None))
    assert client.zrange(table.shop.lane.looks, 0, -1) == [b"-7", b"1"]


def test_who_asks_says_that_it_lives_and_the_silent_are_forgotten(table: Timetable, client: redis.Redis) -> None:
    client.zadd(table.shop.lane.dispatchers, {"silent": table.began_ms - 20_000, "dead": table.began_ms - 61_000})
    table.due(dispatcher="d1")
    table.due(dispatcher="d2")
    assert sorted(alive(client, table.shop.lane)) == ["d1", "d2"]
    assert {name for name, _ in client.zscan_iter(table.shop.lane.dispatchers)} == {b"d1", b"d2", b"silent"}
    assert table.books.dispatchers == 2
    run(client, table.schedule.leave("d1"))
    assert alive(client, table.shop.lane) == ["d2"]


# dispatch -------------------------------------------------------------------------------------------------------------


def test_a_dispatched_board_has_a_task_a_job_and_a_next_time(table: Timetable, client: redis.Redis) -> None:
    # Given a board that is due; when it is dispatched
    table.add("7")
    look = table.look("7")
    assert table.dispatch(scan(look)) == [Dispatched.YES]
    # Then its task waits as if it had been submitted, and says all it has to
    (entry,) = table.shop.read()
    task = Task.from_fields(entry.fields, source="bbs", stage="list", entry_id=entry.id)
    assert (task.key, task.job, task.priority, task.full, task.depth) == ("7", "j1", 4, True, 0)
    assert (table.shop.books.tasks, table.shop.books.accepted) == (1, 1)
    assert (table.shop.job("j1").open, table.shop.job("j1").accepted) == (1, {"list": 1})
    assert client.zscore(table.shop.lane.jobs, "j1") is not None
    # And it is due in an hour, and counted
    assert table.read("7") == Read("7", b"%d" % (table.began_ms - 1000 + HOUR_MS), b'{"last":{"job":"j1"}}')
    assert table.due().looks == []
    books = table.books
    assert (books.boards, books.scheduled, books.due, books.dispatched) == (1, 1, 0, 1)
    assert 1000 <= books.late_ms < 30_000


def test_two_dispatchers_with_one_reading_dispatch_once(table: Timetable) -> None:
    # Given two dispatchers that looked at the same instant
    table.add("7", "8")
    looks = [table.look("7"), table.look("8")]
    # When both dispatch what they saw; then the second is told that somebody else was quicker
    assert table.dispatch(*(scan(look, f"a{look.board.id}") for look in looks)) == [Dispatched.YES] * 2
    before = table.shop.everything()
    assert table.dispatch(*(scan(look, f"b{look.board.id}") for look in looks)) == [Dispatched.ELSEWHERE] * 2
    assert table.shop.everything() == before


def test_dispatch_twice_happens_once(table: Timetable) -> None:
    # Given a dispatch whose answer was lost; when it is said again; then it is recognized, and nothing changes
    table.add("7")
    call = scan(table.look("7"))
    assert table.dispatch(call) == [Dispatched.YES]
    before = table.shop.everything()
    assert table.dispatch(call) == [Dispatched.YES]
    assert table.shop.everything() == before


@pytest.mark.parametrize("changed", ["entry", "due", "gone", "paused"])
def test_a_board_that_was_changed_meanwhile_is_left_alone(table: Timetable, changed: str) -> None:
    # Given a board that an operator changes after a dispatcher has looked at it
    table.add("7")
    look = table.look("7")
    due_ms = look.board.due_ms
    assert due_ms is not None
    changes = {
        "entry": Change(look.board, b'{"priority":1}', due_ms, due_ms),
        "due": Change(look.board, look.board.entry, due_ms + 1, due_ms),
        "gone": Change(look.board, b"", None),
        "paused": Change(look.board, look.board.entry, None),
    }
    assert table.plan(changes[changed])
    # When that dispatcher dispatches it; then it does nothing
    assert table.dispatch(scan(look)) == [Dispatched.ELSEWHERE]
    assert table.shop.books.tasks == 0


def test_at_most_as_many_are_dispatched_as_the_threshold_has_room_for(table: Timetable) -> None:
    # Given a threshold of five, two tasks in the stage, one of them admitted, and six boards due
    table.shop.submit("x", "y")
    table.shop.admit(table.shop.read()[0], b"page")
    table.add(*"abcdef")
    due = table.due(threshold=5)
    # When all six are dispatched; then three are, and the others wait as they are
    answers = table.dispatch(*(scan(look, f"j{look.board.id}") for look in due.looks), threshold=5)
    assert answers == [Dispatched.YES] * 3 + [Dispatched.NO_ROOM] * 3
    assert table.shop.books.open == 5
    # And with no room none is even told, but that there are some, and that is counted
    full = table.due(threshold=5)
    assert (full.looks, full.waiting) == ([], 3)
    assert (table.books.due, table.books.skipped_full, table.books.dispatched) == (3, 1, 3)
    assert table.books.lateness_ms >= 1000
    # And when there is room again, they are told
    table.shop.commit(table.shop.lease_one())
    assert len(table.due(threshold=5).looks) == 3


def test_leased_and_delayed_pages_take_room_too(table: Timetable) -> None:
    table.shop.start("x", b"1", b"2")
    (one, _) = table.shop.lease(2)
    table.shop.client.zadd(table.shop.keys.delayed, {b"12345678j\x1f\x1f\x1f\x1f{}": 9e15})
    table.add("7")
    assert table.due(threshold=3).looks == []
    assert table.dispatch(scan(Look(table.read("7"), False, None, False)), threshold=3) == [Dispatched.NO_ROOM]
    table.shop.client.delete(table.shop.keys.delayed)
    table.shop.commit(one)
    assert len(table.due(threshold=3).looks) == 1


def test_a_board_that_is_being_scanned_is_not_dispatched(table: Timetable) -> None:
    # Given a board whose scan has two pages, one of them done, and that is due again
    table.add("7")
    table.dispatch(scan(table.look("7"), "j1", in_ms=1))
    (entry,) = table.shop.read()
    table.shop.admit(entry, b"page 1")
    table.shop.commit(table.shop.lease_one(), subtasks=[Task("detail", "bbs", "p1")], children=[Child(b"page 2", "")])
    # When a dispatcher looks; then it sees that, and cannot have it scanned a second time
    look = table.look("7")
    assert (look.scanning, look.brought) == (True, 1)
    assert table.dispatch(scan(look, "j2", last_job="j1")) == [Dispatched.BUSY]
    # When the last page is done; then it can, and sees what the scan brought
    table.shop.commit(table.shop.lease_one(), subtasks=[Task("detail", "bbs", "p2")])
    look = table.look("7")
    assert (look.scanning, look.brought, look.dead) == (False, 2, False)
    assert table.dispatch(scan(look, "j2", last_job="j1")) == [Dispatched.YES]


def test_a_scan_that_died_is_over(table: Timetable) -> None:
    # Given a scan whose page was parked; then it is no longer under way, and is told as dead
    table.add("7")
    table.dispatch(scan(table.look("7"), "j1", in_ms=1))
    (entry,) = table.shop.read()
    table.shop.admit(entry, b"page 1")
    table.shop.submit("another")
    table.shop.run(table.shop.store.park([Park(table.shop.lease_one().id, "unreadable", "it is no list")]))
    look = table.look("7")
    assert (look.scanning, look.dead) == (False, True)
    assert table.dispatch(scan(look, "j2", last_job="j1")) == [Dispatched.YES]


def test_a_scan_whose_work_was_thrown_away_blocks_nobody(table: Timetable, client: redis.Redis) -> None:
    # Given a board whose task was deleted by hand, so that its job stays open for ever
    table.add("7")
    table.dispatch(scan(table.look("7"), "j1", in_ms=1))
    client.delete(table.shop.keys.tasks)
    client.hdel(table.shop.keys.stats, "streamed", "accepted")
    # When a dispatcher looks, and the stage has nothing at all; then the scan is no longer under way
    look = table.look("7")
    assert not look.scanning
    assert table.dispatch(scan(look, "j2", last_job="j1")) == [Dispatched.YES]
    client.delete(table.shop.lane.job("j1"))


def test_a_scan_whose_books_are_forgotten_is_over_and_nobody_knows_what_it_brought(table: Timetable) -> None:
    table.add("7", entry=b'{"last":{"job":"forgotten"}}')
    look = table.look("7")
    assert (look.scanning, look.brought, look.dead) == (False, None, False)


def test_a_job_that_somebody_has_is_not_taken(table: Timetable) -> None:
    table.shop.submit("x", job="j1")
    table.add("7")
    assert table.dispatch(scan(table.look("7"), "j1")) == [Dispatched.ELSEWHERE]
    assert table.shop.job("j1").accepted == {"list": 1}


def test_the_books_of_a_finished_scan_are_kept_for_an_hour(table: Timetable, client: redis.Redis) -> None:
    table.add("7")
    table.dispatch(scan(table.look("7"), "j1"))
    assert client.ttl(table.shop.lane.job("j1")) == -1
    table.finish()
    assert 3590 < client.ttl(table.shop.lane.job("j1")) <= 3600


# plan -----------------------------------------------------------------------------------------------------------------


def test_a_plan_is_made_only_of_what_was_read(table: Timetable) -> None:
    # Given a board; when two change it as they read it; then the second does not
    table.add("7", entry=b'{"a":1}')
    read = table.read("7")
    assert table.plan(Change(read, b'{"a":2}', 5, 5))
    assert not table.plan(Change(read, b'{"a":3}', 9, 9))
    assert table.read("7") == Read("7", b"5", b'{"a":2}')
    # And adding one that is there already adds nothing
    assert not table.plan(Change(Read("7"), b"{}", 1, 1))


def test_plan_twice_happens_once(table: Timetable) -> None:
    # Given each kind of change; when it is said twice; then it is so once, and a counter went up by one
    table.add("7")
    for change in (
        Change(table.read("7"), b'{"a":1}', 50, 60, "skipped_busy"),
        Change(Read("7", b"50", b'{"a":1}'), b'{"a":1}', 50, 70, "skipped_busy"),
        Change(Read("7", b"50", b'{"a":1}'), b'{"a":1}', None),
        Change(Read("7", b"", b'{"a":1}'), b"", None),
        Change(Read("8"), b"{}", 5, 5),
    ):
        assert table.plan(change)
        before = table.shop.everything()
        assert table.plan(change)
        assert table.shop.everything() == before
    assert table.books.skipped_busy == 2


def test_a_paused_board_is_a_board_that_is_never_due(table: Timetable) -> None:
    table.add("7")
    assert table.plan(Change(table.read("7"), b'{"enabled":false}', None))
    assert table.due().looks == []
    assert (table.books.boards, table.books.scheduled) == (1, 0)
    assert table.read("7") == Read("7", b"", b'{"enabled":false}')


def test_a_board_that_goes_leaves_nothing_behind(table: Timetable, client: redis.Redis) -> None:
    table.add("7")
    assert table.plan(Change(table.read("7"), b"", None))
    assert client.keys("*") == []


def test_a_board_may_be_looked_at_sooner_or_later_than_it_is_due(table: Timetable) -> None:
    # Given one that is due but to be looked at later, and one the other way round
    table.add("7", "8")
    now_ms = table.began_ms
    assert table.plan(Change(table.read("7"), b"{}", now_ms - 5000, now_ms + 60_000))
    assert table.plan(Change(table.read("8"), b"{}", now_ms + 60_000, now_ms - 1))
    # Then the look decides what a dispatcher sees, and the due time how late the schedule is
    assert [look.board.id for look in table.due().looks] == ["8"]
    assert (table.books.due, table.books.lateness_ms >= 5000) == (1, True)


def test_thousands_of_boards_are_read_in_batches(table: Timetable, client: redis.Redis) -> None:
    ids = [f"b{n}" for n in range(1500)]
    for at in range(0, len(ids), 500):
        changes = [Change(Read(each), b'{"every":"1m"}', 7, 7) for each in ids[at : at + 500]]
        assert all(run(client, table.schedule.plan(changes)))
    assert sorted(table.schedule.ids(client)) == sorted(ids)
    assert table.schedule.read(client, ids[::-1]) == [Read(each, b"7", b'{"every":"1m"}') for each in ids[::-1]]
    due = table.due(want=200)
    assert (len(due.looks), due.waiting) == (200, 1500)


# a full server --------------------------------------------------------------------------------------------------------


def test_a_full_server_takes_no_scan_and_the_dispatcher_lives_on(table: Timetable, client: redis.Redis) -> None:
    # Given a board that is due, and a server that has no more memory
    table.add("7")
    late = scan(table.look("7"))
    before = table.shop.everything()
    client.config_set("maxmemory", 1)
    try:
        # When it is dispatched; then that is refused as a whole, and dispatchers can look even so
        with pytest.raises(redis.ResponseError, match="maxmemory"):
            table.dispatch(late)
        assert len(table.due().looks) == 1
    finally:
        client.config_set("maxmemory", 0)
    before.pop(table.shop.lane.dispatchers.encode())
    after = table.shop.everything()
    assert {key: after[key] for key in before} == before
    assert len(after) == len(before) + 1
    # And it is dispatched when there is room again
    assert table.dispatch(late) == [Dispatched.YES]
