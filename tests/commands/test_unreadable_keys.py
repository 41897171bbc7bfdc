"""Commands that meet a key which somebody else wrote: one sentence that names it, and exit status 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from commands.operator import Operator
from commands.rows import ROWS
from threadmill.model.keys import Lane
from threadmill.store.soundness import faults, named

LANE = Lane("bbs")
DETAIL, LIST = LANE.stage("detail"), LANE.stage("list")

WRONG_TYPES = [
    (LANE.items, "workers"),
    (LANE.items_stats, "status"),
    (LANE.jobs, "jobs"),
    (LANE.jobs, "submit detail 1"),
    (LANE.job("J"), "job J"),
    (LANE.events, "events"),
    (LANE.boards, "boards list"),
    (LANE.schedule, "boards add 7 --every 10m"),
    (LANE.schedule_stats, "status"),
    (LANE.dispatchers, "workers"),
    (DETAIL.tasks, "submit detail 1"),
    (DETAIL.tasks, "purge detail --yes"),
    (DETAIL.express, "requeue detail 1"),
    (DETAIL.requests, "peek detail"),
    (DETAIL.delayed, "trace 1"),
    (DETAIL.leases, "workers"),
    (DETAIL.leased, "trace 1"),
    (DETAIL.dead, "trace 1"),
    (DETAIL.dead_index, "dead list detail"),
    (DETAIL.stats, "status"),
    (DETAIL.workers, "workers"),
    (DETAIL.reports, "workers"),
    (DETAIL.control, "pause detail"),
    (DETAIL.control, "scale detail=2"),
    (LIST.control, "rate bbs"),
]

WRONG_VALUES = [
    (LANE.items_stats, "committed", "status"),
    (LANE.job("J"), "open", "job J"),
    (LANE.job("J"), "detail:accepted", "jobs"),
    (DETAIL.stats, "accepted", "status"),
]


def told(threadmill: Operator, key: str, line: str) -> None:
    answer = threadmill(*line.split())
    assert (answer.status, answer.out) == (3, ""), answer
    assert f"the Redis key {key} cannot be read: " in answer.err
    assert "redis-cli" in answer.err
    assert answer.err.count("\n") == 1
    # And the doctor finds the same
    assert f"keys: the Redis key {key} cannot be read: " in threadmill("doctor").out


@pytest.mark.parametrize(("key", "line"), WRONG_TYPES)
def test_a_key_of_another_type_is_named(threadmill: Operator, client: redis.Redis, key: str, line: str) -> None:
    client.rpush(key, "not ours")
    client.zadd(LANE.jobs, {"J": 1}) if key != LANE.jobs else None
    told(threadmill, key, line)


@pytest.mark.parametrize(("key", "field", "line"), WRONG_VALUES)
def test_a_field_that_is_no_number_is_named(
    threadmill: Operator, client: redis.Redis, key: str, field: str, line: str
) -> None:
    client.hset(key, field, b"fast\xff")
    client.zadd(LANE.jobs, {"J": 1})
    told(threadmill, key, line)


@pytest.mark.parametrize(
    ("key", "field", "line"),
    [
        (DETAIL.control, "concurrency", "concurrency detail"),
        (LIST.control, "rate", "rate bbs"),
    ],
)
def test_an_order_that_workers_cannot_read_is_none(
    threadmill: Operator, client: redis.Redis, key: str, field: str, line: str
) -> None:
    # Given a rate, or a concurrency, that is no number: workers take it for nothing
    client.hset(key, field, b"fast\xff")
    # Then the command says what holds; and the doctor, what is in the way
    answer = threadmill(*line.split())
    assert answer.status == 0
    assert " says" in answer.out
    assert f"keys: the Redis key {key} cannot be read: its field {field!r} is" in threadmill("doctor").out


def test_every_key_of_another_type_is_found(client: redis.Redis) -> None:
    kept = [each.key for each in named(LANE)]
    for key in kept:
        client.rpush(key, "not ours")
        assert [fault.key for fault in faults(client, [LANE])] == [key]
        client.delete(key)


def tasks(client: redis.Redis) -> None:
    client.xadd(DETAIL.tasks, {b"\xff": b"\xfe"})
    client.xadd(DETAIL.tasks, {"k": "4711", "d": "deep", "h": "no history\x1e"})
    client.xadd(DETAIL.tasks, {"task": b'{"key":"4711","v":99}'})


def queued(client: redis.Redis) -> None:
    members = [b"", b"\xff", b"12345678a\x1fb\x1fx\x1f\x1f{}", b'12345678a\x1fb\x1f\x1f9\x1c9\x1cx\x1e\x1f{"k":"4711"}']
    for key in (DETAIL.requests, DETAIL.delayed):
        client.zadd(key, dict.fromkeys(members, 1e15))
    client.hset(DETAIL.leased, mapping={b"\xff": members[1], b"w.1.1": members[2]})
    client.zadd(DETAIL.leases, {b"\xff": 1, b"w.1.1": 5, b"lonely": 1e15})


def letters(client: redis.Redis) -> None:
    record = b'a\x1fb\x1f\x1f\x1f{"k":"4711"}'
    client.hset(DETAIL.dead, mapping={b"\xff": b"x", "1": b"r\x1frequest\x1f99999999999999999\x1ferr\x1f" + record})
    client.hset(DETAIL.dead, "2", b"r\x1ftask\x1fxx\x1ferr\x1fjob")
    client.zadd(DETAIL.dead_index, {b"\xff": 1, "1": 2, "2": 3, "3": 4})


def boards(client: redis.Redis) -> None:
    of_the_future = b'{"every":"10m","last":{"at_ms":1e30},"moon":"full"}'
    client.hset(LANE.boards, mapping={b"\xff": b"x", "7": b"\xff", "8": b"[1]", "9": of_the_future})
    client.zadd(LANE.schedule, {b"\xff": 1, "7": 1, "8": 2, "9": 5})


def jobs(client: redis.Redis) -> None:
    client.hset(LANE.job("nobody"), mapping={b"new\xff:thing": b"\xfe", "list:accepted": 1, "open": 1})
    client.zadd(LANE.jobs, {"nobody": 1, b"\xff": 2})
    client.xadd(LANE.events, {b"\xff": b"\xfe"})
    client.zadd(DETAIL.workers, {b"\xff": 1})


@pytest.mark.parametrize("spoil", [tasks, queued, letters, boards, jobs])
def test_entries_that_cannot_be_read_keep_no_command_from_the_others(
    threadmill: Operator, client: redis.Redis, spoil: Callable[[redis.Redis], Any]
) -> None:
    # Given entries of our keys that somebody else wrote, or a release to come
    spoil(client)
    # When any command is said, those first that only look
    for row in sorted(ROWS, key=lambda row: row.line.startswith(("purge", "dead drop", "dead replay"))):
        if not row.line.startswith(("up", "import")):
            # Then it does its work: no traceback, and no status but its own
            answer = threadmill(*row.arguments())
            assert answer.status in {0, 1, 2}, (row.line, answer)
