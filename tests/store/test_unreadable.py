"""Entries that nobody of us wrote: the verbs go on with the others, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from store.workshop import Workshop
from threadmill.store.schedule import Schedule
from threadmill.store.status import stage_books
from threadmill.store.work import Park


@pytest.fixture
def shop(client: redis.Redis) -> Iterator[Workshop]:
    yield Workshop(client)  # no audit: what was never submitted is in nobody's books


@pytest.mark.parametrize(
    "member", [b"", b"\xff\xfe", b"12345678", b"12345678not a record", b"12345678a\x1fb\x1fx\x1f\x1f{}"]
)
@pytest.mark.parametrize("queue", ["requests", "delayed"])
def test_what_is_no_request_is_leased_as_a_payload_and_parked(shop: Workshop, queue: str, member: bytes) -> None:
    # Given something else in a queue, before a request
    shop.client.zadd(getattr(shop.keys, queue), {member: 1})
    shop.queue(b'{"k":"1"}')
    # When a worker leases
    leases = shop.lease(5)
    # Then it gets both, and can park the one that cannot be read, with its bytes
    assert sorted(lease.record.payload for lease in leases) == sorted([member[8:], b'{"k":"1"}'])
    odd = next(lease for lease in leases if lease.record.payload == member[8:])
    assert shop.run(shop.store.park([Park(odd.id, "unreadable", "no request")])) is not None
    assert len(shop.letters()) == 1


def test_what_is_no_request_is_reclaimed_from_the_dead(shop: Workshop) -> None:
    shop.client.zadd(shop.keys.requests, {b"12345678not a record": 1})
    shop.ask(1, ttl_ms=0)
    assert shop.reclaim()[0] == 1
    (lease,) = shop.lease(1)
    assert (lease.record.payload, lease.record.deliveries) == (b"not a record", 1)


@pytest.mark.parametrize("body", [b"x", b"r\x1frequest", b"r\x1ftask\x1fxx\x1ferr\x1fjob"])
def test_what_is_no_letter_is_not_replayed_and_can_be_dropped(shop: Workshop, body: bytes) -> None:
    shop.client.hset(shop.keys.dead, "1", body)
    shop.client.zadd(shop.keys.dead_index, {"1": 1})
    assert shop.run(shop.store.replay(["1"])) == 0
    assert shop.letters() == ["1"]
    assert shop.run(shop.store.drop(["1"])) == 1
    assert shop.letters() == []


@pytest.mark.parametrize("said", ["x", "-1", "0", "nan", "inf", "1e9", b"\xff"])
def test_a_concurrency_that_is_none_says_nothing(shop: Workshop, said: str) -> None:
    shop.client.hset(shop.keys.control, "concurrency", said)
    shop.queue(b"{}")
    answer = shop.ask(1)
    assert (answer.concurrency, len(answer.leases)) == (None, 1)


@pytest.mark.parametrize("said", ["fast", "-1", "nan", "inf", b"\xff"])
def test_a_rate_that_is_none_leaves_the_sources(shop: Workshop, said: str) -> None:
    # Given a source that may be asked once a second, and nonsense that an operator's script wrote
    shop.client.hset(shop.keys.control, "rate", said)
    shop.queue(b"1", b"2", b"3")
    # Then the source's own rate holds
    assert len(shop.lease(3, interval_us=1_000_000)) == 1


@pytest.mark.parametrize("field", ["hold", "keep", "priority", "detail:items"])
def test_a_jobs_nonsense_keeps_no_work_from_ending(shop: Workshop, field: str) -> None:
    shop.client.hset(shop.lane.job("J"), field, "soon")
    shop.queue(b"{}", job="J")
    assert shop.commit(shop.lease_one())
    books = stage_books(shop.client, [shop.lane])["detail"]
    assert (books.done, books.open, books.balanced) == (1, 0, True)


def test_a_board_whose_id_is_no_text_keeps_no_dispatcher_from_the_others(shop: Workshop) -> None:
    schedule = Schedule(shop.lane)
    shop.client.hset(shop.lane.boards, b"\xff", b"{}")
    shop.client.zadd(shop.lane.looks, {"0": 0})
    shop.client.zadd(shop.lane.looks_of(0), {b"\xff": 1})
    (look,) = shop.run(schedule.due("d1", threshold=10)).looks
    assert look.board.id.encode("utf-8", "surrogateescape") == b"\xff"
