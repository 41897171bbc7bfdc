"""threadmill peek and workers: what waits, and who works."""

from __future__ import annotations

import redis

from commands.operator import Operator
from store.workshop import EXPIRED_MS, Workshop
from threadmill.model.keys import Lane
from threadmill.store.calls import run
from threadmill.store.items import ItemStreams
from threadmill.store.work import Delay


def test_what_waits_is_shown_in_the_order_in_which_it_would_come(shop: Workshop, threadmill: Operator) -> None:
    # Given work in every place, some of it of an operator's
    shop.queue(b'{"k":"9"}')
    lease = shop.lease_one()
    shop.queue(b'{"k":"8"}')
    shop.run(shop.store.delay([Delay(shop.lease_one().id, 60_000, "http-500", "no")], max_failures=5))
    shop.queue(b'{"k":"2"}', b'{"k":"3","n":4}')
    shop.queue(b'{"k":"1"}', priority=5)
    shop.submit("5", "6", job="7")
    shop.submit("4", express=True, job="7")
    before = shop.everything()
    # When an operator peeks
    rows = threadmill("peek", "detail", "--json").lines
    # Then all of it is told in order, and nothing has moved
    assert [(row["queue"], row["key"]) for row in rows] == [
        ("leased", "9"),
        ("requests", "1"),
        ("requests", "2"),
        ("requests", "3"),
        ("express", "4"),
        ("tasks", "5"),
        ("tasks", "6"),
        ("delayed", "8"),
    ]
    assert rows[0]["worker"] == lease.id.rsplit(".", 2)[0]
    assert (rows[3]["page"], rows[3]["before"]) == (4, 2)
    assert rows[5]["job"] == "7"
    assert shop.everything() == before
    # And so is a part of it, as a table, too
    assert [row["key"] for row in threadmill("peek", "detail", "--queue", "tasks", "--limit", "1", "--json").lines] == [
        "4",
        "5",
    ]
    told = threadmill("peek", "detail").out
    assert "1 leased, 3 requests, 1 express, 2 tasks, 1 delayed" in told


def test_lanes_take_turns(shop: Workshop, threadmill: Operator) -> None:
    # Given two lanes with work
    threadmill.set("THREADMILL_PARTITIONS", "2")
    shop.submit("1", "2", "3")
    other = Lane("bbs", 1).stage("detail")
    shop.client.xadd(other.tasks, {"task": '{"key":"9"}'})
    # When an operator peeks; then one of each comes in turn
    assert [row["key"] for row in threadmill("peek", "detail", "--json").lines] == ["1", "9", "2", "3"]


def test_what_cannot_be_read_is_shown_as_that(client: redis.Redis, threadmill: Operator) -> None:
    # Given entries that nobody of ours wrote
    keys = Lane("bbs").stage("detail")
    client.xadd(keys.tasks, {"nonsense": b"\xff"})
    client.zadd(keys.requests, {b"?": 0, b"\x00" * 8 + b"\xff\xfe": 1})
    client.zadd(keys.leases, {b"lost": 5})
    client.hset(keys.dead, "x", b"\xff")
    client.zadd(keys.dead_index, {"x": 1})
    # When commands meet them; then they say so, and go on
    assert [row["key"] for row in threadmill("peek", "detail", "--json").lines] == [None, None, None]
    assert "cannot be read" in threadmill("peek", "detail").out
    assert threadmill("trace", "1").status == 1
    assert threadmill("dead", "list", "detail", "--json").lines[0]["reason"] == "unreadable-letter"
    assert threadmill("workers").status == 0


def test_nothing_waits(threadmill: Operator) -> None:
    assert "nothing waits in detail" in threadmill("peek", "detail").out
    assert threadmill("peek", "detail", "--json").out == ""
    assert threadmill("peek", "detail", "--queue", "dreams").status == 2
    assert threadmill("peek", "detail", "--limit", "0").status == 2


def test_who_works_and_what_each_holds(shop: Workshop, threadmill: Operator) -> None:
    # Given a worker with two leases and a task, one that died with one, an item writer and a dispatcher
    alive, lost = "host-a-77-abcd", "host-b-78-ef01"
    shop.run(shop.store.report(alive, 1, {}))
    shop.run(shop.store.report(alive, 2, {}))
    shop.queue(b"1", b"2", b"3")
    shop.lease(1, token=lost, ttl_ms=EXPIRED_MS)
    shop.lease(2, token=alive)
    shop.submit("4")
    shop.read(alive)
    streams = ItemStreams(shop.client, [shop.lane], "sql", "host-c-79-2345")
    streams.ensure_groups()
    shop.client.xadd(shop.lane.items, {"s": "detail", "i": "[]"})
    streams.read(10)
    seconds, _ = shop.client.time()
    shop.client.zadd(shop.lane.dispatchers, {"host-d-80-6789": seconds * 1000})
    # When an operator asks
    found = {worker["id"]: worker for worker in threadmill("workers", "--json").json["workers"]}
    # Then each is there with what it holds
    assert [(w["service"], w["silent"], w["leases"], w["entries"]) for w in found.values()] == [
        ("detail_collector", False, 2, 1),
        ("detail_collector", True, 1, 0),
        ("item_writer", False, 0, 1),
        ("dispatcher", False, 0, 0),
    ]
    worker = found[alive]
    assert (worker["host"], worker["process"], worker["stage"]) == ("host-a", 77, "detail")
    assert worker["since"] <= worker["seen"] < worker["first_lease_ends"]
    # And a table says who is silent
    told = threadmill("workers").out
    assert next(line for line in told.splitlines() if lost in line).split()[-1] == "0"
    assert "silent" in told


def test_since_when_goes_with_the_worker(shop: Workshop) -> None:
    # Given a worker that has reported twice; when it leaves; then nothing of it is left
    for number in (1, 2):
        shop.run(shop.store.report("w1", number, {}))
    assert shop.client.hexists(shop.keys.reports, "w1:since")
    run(shop.client, shop.store.leave("w1"))
    assert not shop.client.exists(shop.keys.reports)


def test_nobody_works(threadmill: Operator) -> None:
    assert threadmill("workers", "--json").json == {"workers": []}
    assert "nobody works" in threadmill("workers").out
