"""The contract of every queue order: what is leased first, and that a request that waited keeps its place."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import redis

from store.workshop import EXPIRED_MS, Workshop, payloads
from threadmill.model.task import EXPRESS_PRIORITY
from threadmill.store.orders import QUEUE_ORDERS
from threadmill.store.work import Child, Delay

RANKS: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "priority": lambda priority, number: (-priority, number),
    "fifo": lambda priority, number: (number,),
    "lifo": lambda priority, number: (-number,),
}


@pytest.fixture(params=sorted(QUEUE_ORDERS))
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(client: redis.Redis, order: str) -> Workshop:
    return Workshop(client, order=QUEUE_ORDERS[order])


def enqueue(shop: Workshop, priorities: list[int]) -> None:
    roots = [Child(b"%d" % number, "", priority) for number, priority in enumerate(priorities)]
    shop.run(shop.store.enqueue(roots, token="once"))


def expected(order: str, priorities: list[int]) -> list[bytes]:
    """Express first, in the order they came; the rest by the order's rank."""
    rank = RANKS[order]
    numbered = sorted(
        enumerate(priorities),
        key=lambda pair: (0, pair[0]) if pair[1] >= EXPRESS_PRIORITY else (1, *rank(pair[1], pair[0])),
    )
    return [b"%d" % number for number, _ in numbered]


def test_requests_are_leased_in_order(shop: Workshop, order: str) -> None:
    # Given 80 requests of few different priorities
    rng = random.Random(order)
    priorities = [rng.choice([-999_999, -1, 0, 0, 1, 7, 999_999]) for _ in range(80)]
    enqueue(shop, priorities)
    # When they are leased a few at a time
    leased: list[bytes] = []
    while batch := shop.lease(rng.randint(1, 9)):
        leased += payloads(batch)
    # Then they come in the order's rank, equal ones as they came
    assert leased == expected(order, priorities)


def test_express_comes_before_everything(shop: Workshop, order: str) -> None:
    # Given requests before and after two that an operator asked for by hand
    priorities = [0, 999_999, EXPRESS_PRIORITY, 5, EXPRESS_PRIORITY + 5, 999_999]
    enqueue(shop, priorities)
    # When all are leased
    leased = payloads(shop.lease(10))
    # Then those two are first, in the order they came
    assert leased == expected(order, priorities)
    assert leased[:2] == [b"2", b"4"]


def test_place_in_the_order_survives_delay_release_and_reclaim(shop: Workshop, order: str) -> None:
    # Given a queue from which six were leased
    priorities = [3, 3, 1, 3, 2, 2, 1, 3, 2, 1]
    enqueue(shop, priorities)
    kept = shop.lease(4)
    shop.lease(2, ttl_ms=EXPIRED_MS)
    # When two are delayed and fall due, two are given back, and the worker of two dies
    delays = [Delay(lease.id, 0, "http-500", "") for lease in kept[:2]]
    assert shop.run(shop.store.delay(delays, max_failures=5)) == [1, 1]
    assert shop.run(shop.store.release([lease.id for lease in kept[2:]])) == 2
    assert shop.reclaim()[0] == 2
    # Then all come in the order in which they were first queued
    assert payloads(shop.lease(20)) == expected(order, priorities)


def test_equal_payloads_never_collapse(shop: Workshop) -> None:
    # Given the same payload three times
    shop.queue(b"same", b"same", b"same")
    # When they are leased
    leases = shop.lease(10)
    # Then there are three
    assert payloads(leases) == [b"same"] * 3
    assert len({lease.id for lease in leases}) == 3
