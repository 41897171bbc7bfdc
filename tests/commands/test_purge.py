"""threadmill purge: waiting work is thrown away; the books balance, jobs end, and it may be submitted again."""

from __future__ import annotations

import pytest

from commands.operator import Operator
from store.workshop import Workshop
from threadmill.store.calls import run
from threadmill.store.work import Delay, Park


def test_waiting_work_is_dropped_and_leased_and_dead_work_is_not(shop: Workshop, threadmill: Operator) -> None:
    # Given tasks, pages of a run, one of them leased and one dead, and a delayed page, of one job
    shop.start("1", *(b'{"k":"1","n":%d}' % page for page in range(1, 6)), job="7")
    mine, dead, delayed = shop.lease(3)
    shop.run(shop.store.park([Park(dead.id, "http-403", "no")]))
    shop.run(shop.store.delay([Delay(delayed.id, 60_000, "http-500", "no")], max_failures=5))
    shop.submit("2", "3", job="7")
    shop.submit("4", job="7", express=True)
    shop.push({"key": "5", "job": "7"})
    # When the stage is purged
    ended = threadmill("purge", "detail", "--yes", "--json")
    # Then what waited is gone, and counted
    assert ended.json == {"purged": {"express": 1, "tasks": 3, "delayed": 1, "requests": 2}}
    shop.audit()
    books = shop.books
    assert (books.leased, books.dead, books.open, books.done) == (1, 1, 1, 7)
    assert shop.stat("dropped") == 7
    # And the worker that holds a page commits it, and the job is open until the letter is handled
    assert shop.commit(mine).ok
    assert shop.job("7").open == 0
    assert shop.job("7").dead == {"detail": 1}
    # And with the letter the run is over
    assert threadmill("purge", "detail", "--queue", "dead", "--yes", "--json").json == {"purged": {"dead": 1}}
    assert not shop.client.exists(shop.keys.runs, *shop.client.keys("*:seen:run:*"))
    assert shop.job("7").finished


def test_what_was_purged_may_be_submitted_again(shop: Workshop, threadmill: Operator) -> None:
    # Given a post never collected, one that was and has moved since, one that was asked for by hand, and a queued one
    shop.submit("new", version="3")
    shop.submit("moved", "asked", version="3")
    for entry in shop.read()[1:]:
        shop.admit(entry, b'{"k":"%s"}' % entry.fields[b"k"])
        shop.commit(shop.lease_one(), key=entry.fields[b"k"].decode())
    shop.submit("moved", version="5")
    shop.submit("asked", version="3", force=True)
    shop.submit("queued", version="3")
    entry = next(entry for entry in shop.read() if entry.fields[b"k"] == b"queued")
    shop.admit(entry, b'{"k":"queued"}')
    # When they are purged
    threadmill("purge", "detail", "--yes")
    # Then what was known before is known, and nothing else
    assert shop.submit("new", "queued", version="3") == (2, 0)
    assert shop.submit("moved", "asked", version="3") == (0, 2)
    assert run(shop.client, shop.store.known("asked")).outcome == "done"
    # And the moved one tells again what was known before
    assert shop.submit("moved", version="5") == (1, 0)
    assert shop.read()[-1].fields[b"o"] == b"3"


def test_only_the_queue_that_was_named_is_purged(shop: Workshop, threadmill: Operator) -> None:
    shop.submit("1", "2")
    shop.queue(b'{"k":"3"}')
    assert "purged from detail: 1 requests" in threadmill("purge", "detail", "--queue", "requests", "--yes").out
    assert shop.books.tasks == 2
    assert "purged from detail: nothing" in threadmill("purge", "detail", "--queue", "delayed", "--yes").out


def test_nothing_is_purged_without_being_asked_for(shop: Workshop, threadmill: Operator) -> None:
    shop.submit("1")
    ended = threadmill("purge", "detail")
    assert ended.status == 2
    assert "Throw away all that waits in detail (1 tasks)?" in ended.err
    assert "--yes" in ended.err
    assert shop.books.tasks == 1


@pytest.mark.parametrize("argument", [("nowhere",), ("detail", "--queue", "leased"), ("detail", "--source", "nowhere")])
def test_what_there_is_not_is_named(threadmill: Operator, argument: tuple[str, ...]) -> None:
    assert threadmill("purge", *argument, "--yes").status == 2


def test_more_than_a_portion_is_purged_and_reads_of_workers_do_no_harm(shop: Workshop, threadmill: Operator) -> None:
    # Given more tasks than go into a portion, some of them read by a worker that has not admitted them
    shop.submit(*(str(number) for number in range(1100)), job="7")
    entries = shop.read(count=30)
    # When they are purged; then all are gone, and the worker's admission comes to nothing
    assert threadmill("purge", "detail", "--yes", "--json").json == {"purged": {"tasks": 1100}}
    assert shop.admit(entries[0], b'{"k":"0"}') == 0
    assert shop.job("7").finished
