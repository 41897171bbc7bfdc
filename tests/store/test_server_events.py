"""What a server does to us: it forgets scripts and groups, and it is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from redis.exceptions import NoScriptError, ResponseError

from store.workshop import EXPIRED_MS, LONG_MS, Workshop
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.store.calls import Call, attempt_all, run_all
from threadmill.store.stage import StageStore
from threadmill.store.streams import PENDING
from threadmill.store.work import Admission, Child, Delay, PageCommit, Park, Refusal

# Scripts --------------------------------------------------------------------------------------------------------------


def test_verbs_go_on_after_a_script_flush(shop: Workshop) -> None:
    # Given a server that restarted, and knows no script
    shop.queue(b"a", b"b")
    shop.client.script_flush()
    # When verbs travel together; then each runs, once
    lease = shop.store.lease(1, worker="t", number=1, ttl_ms=LONG_MS)
    report = shop.store.report("w1", 1, {"pages": 3})
    leased, again, _ = run_all(shop.client, [lease, lease, report])
    assert len(leased.leases) == 1
    assert again == leased
    assert shop.stat("pages") == 3


def test_scripts_can_be_loaded_beforehand(shop: Workshop) -> None:
    shop.client.script_flush()
    with pytest.raises(NoScriptError):
        shop.client.execute_command(*shop.store.renew(["x"], ttl_ms=1).command)
    shop.store.load(shop.client)
    assert shop.client.execute_command(*shop.store.renew(["x"], ttl_ms=1).command) == [b"x"]


def test_one_calls_error_is_its_own(shop: Workshop) -> None:
    # Given a queue that is of another type; when calls travel together; then only those that need it fail
    shop.client.set(shop.keys.requests, "what?")
    lease, report = attempt_all(
        shop.client, [shop.store.lease(1, worker="t", number=1, ttl_ms=1), shop.store.report("w1", 1, {"pages": 1})]
    )
    assert isinstance(lease, ResponseError)
    assert report == 1
    shop.client.delete(shop.keys.requests)


# Groups ---------------------------------------------------------------------------------------------------------------


def test_a_lost_group_is_made_again_at_the_beginning(shop: Workshop) -> None:
    # Given three tasks, one of them in a worker's hands, when the group is destroyed
    shop.submit("1", "2", "3")
    streams = shop.streams("w1")
    (held,) = streams.read(1)
    shop.client.xgroup_destroy(shop.keys.tasks, "workers")
    # Then the one that holds it cannot admit it now (nobody knows that he has it), and nothing is done by halves
    assert shop.admit(held, b"root") == 0
    assert shop.books.tasks == 3
    # When somebody reads; then the group is made, and all three are read again
    assert streams.read(10) == []
    entries = streams.read(10)
    assert [entry.fields[b"k"] for entry in entries] == [b"1", b"2", b"3"]
    assert shop.admit(held, b"root") == 1
    assert shop.admit(entries[0], b"root") == 0


def test_everything_is_lost_and_life_goes_on(shop: Workshop) -> None:
    # Given a worker in the middle of its work when an operator flushes the server
    shop.start("1", b"root", job="j1")
    lease, streams = shop.lease_one(), shop.streams("w1")
    shop.client.flushall()
    # Then its late calls change nothing
    assert not shop.commit(lease, items=[b"{}"]).ok
    assert shop.run(shop.store.renew([lease.id], ttl_ms=LONG_MS)) == [lease.id]
    assert shop.run(shop.store.release([lease.id])) == 0
    assert streams.claim(0) == []
    assert streams.read(10) == []
    assert (shop.books.open, shop.books.accepted) == (0, 0)
    # And new work is done
    shop.submit("2")
    assert shop.admit(streams.read(10)[0], b"root") == 1


def test_entries_in_hand_are_read_again_after_a_lost_reply(shop: Workshop) -> None:
    # Given a reply with two tasks that never arrived
    shop.submit("1")
    shop.submit("2", express=True)
    streams = shop.streams("w1")
    lost = streams.read(10)
    # When the worker asks for what it has in hand; then both come again, and no other worker gets them
    assert streams.read(10, start=PENDING) == lost
    assert shop.read("w2") == []
    assert streams.read(10) == []


# A full server --------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(shop: Workshop) -> Iterator[Callable[[], None]]:
    """Makes the server full; at the end it has room again."""
    yield lambda: shop.client.config_set("maxmemory", 1)
    shop.client.config_set("maxmemory", 0)


def _entry_call(shop: Workshop, *, refuse: bool) -> Call[object]:
    shop.submit("42", job="j1")
    (entry,) = shop.read()
    if refuse:
        return shop.store.refuse([Refusal(entry, "malformed", "")], express=False)
    return shop.store.admit([Admission(entry, "j1", [(0, b"a"), (0, b"b")])], express=False)


def _lease_call(shop: Workshop, interval_us: int) -> Call[object]:
    shop.queue(b"a", b"b")
    return shop.store.lease(2, worker="t", number=1, ttl_ms=LONG_MS, interval_us=interval_us)


def _board_call(shop: Workshop) -> Call[object]:
    """A board brings more work than it is: its stage fills the pipeline."""
    boards = StageStore(shop.lane, LIST)
    shop.run(boards.enqueue([Child(b"a", "1")], token="b1", job="j1"))
    return boards.lease(1, worker="t", number=1, ttl_ms=LONG_MS)


def _late_call(shop: Workshop) -> Call[object]:
    _held(shop, EXPIRED_MS)
    return shop.store.reclaim(max_deliveries=1, silence_ms=LONG_MS)


def _replay_call(shop: Workshop) -> Call[object]:
    shop.run(shop.store.park([Park(_held(shop), "gone", "")]))
    return shop.store.replay(shop.letters())


def _held(shop: Workshop, ttl_ms: int = LONG_MS) -> str:
    shop.start("42", b"root", job="j1")
    return shop.lease_one(ttl_ms=ttl_ms).id


def _page(shop: Workshop) -> PageCommit:
    subtask = Task(stage="comment", source="bbs", key="42")
    children = [Child(b"next", "2")]
    return PageCommit(_held(shop), "1", "gone", children=children, subtasks=[subtask], items=[b"{}"])


FINISHING: dict[str, Callable[[Workshop], Call[object]]] = {
    "admit": lambda shop: _entry_call(shop, refuse=False),
    "refuse": lambda shop: _entry_call(shop, refuse=True),
    "lease": lambda shop: _lease_call(shop, 0),
    "commit": lambda shop: shop.store.commit([_page(shop)]),
    "leave": lambda shop: shop.store.leave("w1"),
    "renew": lambda shop: shop.store.renew([_held(shop)], ttl_ms=2 * LONG_MS),
    "lease at a rate": lambda shop: _lease_call(shop, 1_000_000),
    "release": lambda shop: shop.store.release([_held(shop)]),
    "delay": lambda shop: shop.store.delay([Delay(_held(shop), 0, "r", "e", pause_ms=1)], max_failures=5),
    "delay to death": lambda shop: shop.store.delay([Delay(_held(shop), 0, "r", "e")], max_failures=0),
    "hold": lambda shop: shop.store.hold(1_000),
    "park": lambda shop: shop.store.park([Park(_held(shop), "r", "e")]),
    "reclaim": _late_call,
    "report": lambda shop: shop.store.report("w1", 1, {"pages": 1}),
}
PRODUCING: dict[str, Callable[[Workshop], Call[object]]] = {
    "submit": lambda shop: shop.store.submit([shop.task("1")], token="t", job="j1"),
    "enqueue": lambda shop: shop.store.enqueue([Child(b"a", "1"), Child(b"b", "")], token="e1", job="j1"),
    "lease of a board": _board_call,
    "replay": _replay_call,
}


@pytest.mark.parametrize("verb", FINISHING)
def test_a_full_server_still_finishes_work(shop: Workshop, full: Callable[[], None], verb: str) -> None:
    # Given work in hand, and no room left; when it is finished; then that is done, whole
    shop.store.load(shop.client)
    call = FINISHING[verb](shop)
    full()
    (answer,) = attempt_all(shop.client, [call])
    assert not isinstance(answer, Exception)


def test_a_worker_can_arrive_at_a_full_server(shop: Workshop, full: Callable[[], None]) -> None:
    full()
    shop.streams("w1").ensure_groups()
    assert shop.read() == []


@pytest.mark.parametrize("verb", PRODUCING)
def test_a_full_server_refuses_a_verb_as_a_whole(shop: Workshop, full: Callable[[], None], verb: str) -> None:
    # Given no room left
    shop.store.load(shop.client)
    call = PRODUCING[verb](shop)
    before = shop.everything()
    full()
    # When a verb would need some; then it is refused and has changed nothing
    (answer,) = attempt_all(shop.client, [call])
    assert isinstance(answer, ResponseError)
    assert "maxmemory" in str(answer)
    assert shop.everything() == before
    # And the same call does its work when there is room again
    shop.client.config_set("maxmemory", 0)
    (answer,) = attempt_all(shop.client, [call])
    assert not isinstance(answer, Exception)
    assert shop.everything() != before
