"""report, leave, and the part of reclaim that forgets workers."""

from __future__ import annotations

from store.workshop import Workshop

NOW_SILENT = 0
"""With this patience, whoever has not reported since is silent."""


def consumers(shop: Workshop) -> set[str]:
    streams = (shop.keys.tasks, shop.keys.express)
    return {c["name"].decode() for stream in streams for c in shop.client.xinfo_consumers(stream, "workers")}


def report(shop: Workshop, worker: str, number: int = 1, **increments: int) -> int:
    return shop.run(shop.store.report(worker, number, increments))


def test_a_report_is_added_once(shop: Workshop) -> None:
    # Given a report; when it is sent again, or an older one arrives late; then nothing is added
    assert report(shop, "w1", 1, pages=5) == 1
    assert report(shop, "w1", 1, pages=5) == 0
    assert report(shop, "w1", 2, pages=7, bytes=1_000_000_000_000) == 1
    assert report(shop, "w1", 1, pages=5) == 0
    # Then the fleet's totals are exact, negative increments too
    assert report(shop, "w2", 1, pages=-2) == 1
    assert (shop.stat("pages"), shop.stat("bytes")) == (10, 1_000_000_000_000)


def test_a_worker_that_reports_is_counted_alive(shop: Workshop) -> None:
    report(shop, "w1")
    report(shop, "w2")
    assert shop.books.workers == 2
    # Given one that is silent for a minute; then it does not count
    shop.client.zincrby(shop.keys.workers, -60_000, "w1")
    assert shop.books.workers == 1


def test_a_worker_that_leaves_takes_its_records_along(shop: Workshop) -> None:
    # Given a worker that read and admitted all it read; when it leaves; then nothing is left of it, twice
    shop.submit("42")
    shop.admit(shop.read("w1")[0], b"root")
    report(shop, "w1")
    leave = shop.store.leave("w1")
    assert [shop.run(leave), shop.run(leave)] == [1, 1]
    assert consumers(shop) == set()
    assert (shop.books.workers, shop.client.hlen(shop.keys.reports)) == (0, 0)


def test_a_worker_with_tasks_in_hand_does_not_leave(shop: Workshop) -> None:
    # Given a worker that read tasks, of either stream, and did not admit them
    for express in (False, True):
        shop.submit("42", express=express, force=True)
        shop.read("w1")
        report(shop, "w1")
        # When it leaves; then its entries stay pending for it
        assert shop.run(shop.store.leave("w1")) == 0
        assert "w1" in consumers(shop)
        # When another takes them over; then it may go
        for entry in shop.streams("w2").claim(0):
            shop.admit(entry, b"root")
        assert shop.run(shop.store.leave("w1")) == 1
    assert consumers(shop) == {"w2"}


def test_leaving_works_without_streams(shop: Workshop) -> None:
    assert shop.run(shop.store.leave("never seen")) == 1


def test_silent_workers_are_forgotten_only_with_nothing_pending(shop: Workshop) -> None:
    # Given three silent workers, one of which died with a task in hand, and a living one
    shop.submit("42")
    (entry,) = shop.read("holds")
    for worker in ("idle", "holds", "never-read"):
        report(shop, worker)
        shop.client.zadd(shop.keys.workers, {worker: 1})
    shop.client.xgroup_createconsumer(shop.keys.tasks, "workers", "idle")
    shop.client.xgroup_createconsumer(shop.keys.tasks, "workers", "alive")
    report(shop, "alive")
    # When leases are reclaimed, twice
    assert shop.reclaim()[2] == 2
    assert shop.reclaim()[2] == 0
    # Then the one with a task in hand is kept until somebody takes the task over
    assert consumers(shop) == {"holds", "alive"}
    assert shop.client.xpending(shop.keys.tasks, "workers")["pending"] == 1
    assert shop.streams("alive").claim(0) == [entry]
    assert shop.reclaim()[2] == 1
    assert consumers(shop) == {"alive"}
    assert {name.decode() for name in shop.client.hkeys(shop.keys.reports)} == {"alive", "alive:since"}
    assert shop.admit(entry, b"root") == 1


def test_workers_are_forgotten_where_there_are_no_streams(shop: Workshop) -> None:
    report(shop, "w1")
    assert shop.reclaim(silence_ms=NOW_SILENT) == (0, 0, 1)
