"""Looking for a key: in every place, through many portions, while work moves."""

from __future__ import annotations

import time

import orjson
import pytest

from store.workshop import Workshop
from threadmill.store import find
from threadmill.store.find import Search, to_look_at
from threadmill.store.pieces import Piece, Place
from threadmill.store.portions import portions
from threadmill.store.work import Park, Refusal


def look(shop: Workshop, key: str) -> list[Piece]:
    return list(Search(shop.client, shop.lane, "detail", key).pieces())


def test_a_key_is_found_among_thousands_in_every_place(shop: Workshop) -> None:
    # Given thousands of others in every place, and one in the middle of each
    def keys(prefix: str) -> list[str]:
        return [f"{prefix}{number}" for number in range(1500)] + ["wanted"] + [f"{prefix}x{n}" for n in range(700)]

    shop.queue(*(b'{"k":"%s"}' % key.encode() for key in keys("d")))
    leases = shop.lease(1000) + shop.lease(1000) + shop.lease(1000)
    shop.run(shop.store.park([Park(lease.id, "http-403", "no") for lease in leases]))
    shop.queue(*(b'{"k":"%s"}' % key.encode() for key in keys("l")))
    shop.lease(1000), shop.lease(1000), shop.lease(1000)
    shop.queue(*(b'{"k":"%s","n":2}' % key.encode() for key in keys("q")))
    shop.submit(*keys("t"), job="7")
    shop.push({"key": "wanted"})
    # When it is looked for
    told: list[int] = []
    found = list(Search(shop.client, shop.lane, "detail", "wanted", told.append).pieces())
    # Then it is found in each, and all was looked at
    assert [piece.place for piece in found] == ["tasks", "tasks", "requests", "leased", "dead"]
    assert found[0].before == 1500
    assert found[2].before == 1500
    for key in ("l0", "l1499", "lx699", "d0", "d1499", "dx699"):
        assert len(look(shop, key)) == 1
    assert sum(told) == to_look_at(shop.client, shop.lane, "detail") == 4 * 2201 + 1


def test_redis_is_not_held_for_long(shop: Workshop) -> None:
    # Given portions that are full
    shop.submit(*(str(number) for number in range(find.PORTION)))
    # When one is looked through; then in a few milliseconds, by the best of some
    spans = []
    for _ in range(5):
        started = time.perf_counter()
        look(shop, "nobody")
        spans.append(time.perf_counter() - started)
    assert min(spans) < 0.05


@pytest.mark.parametrize("key", ['a"b', "a*b", "a[b]?", "a\\b", "ä€", "a{b}", "x" * 500])
def test_a_key_of_any_characters_is_found(shop: Workshop, key: str) -> None:
    # Given keys that mean something in patterns and in JSON, and others that a pattern would match
    for each in (key, "aXb", "ab", "aa"):
        shop.submit(each)
        shop.push({"key": each})
        shop.queue(orjson.dumps({"k": each}))
    shop.client.xadd(shop.keys.tasks, {"task": '{"key":"\\u00e4\\u20ac"}'})
    # When it is looked for; then it is found, and no other is
    found = look(shop, key)
    assert {piece.key for piece in found} == {key}
    assert len(found) == (4 if key == "ä€" else 3)


def test_a_task_of_a_number_and_a_letter_of_any_spelling_are_found(shop: Workshop) -> None:
    # Given tasks as people write them, one of them parked
    shop.push(b'{ "priority" : 3, "key" :  42 }')
    entries = shop.read()
    shop.run(shop.store.refuse([Refusal(entries[0], "refused-key", "no")], express=False))
    shop.push(b'{"key": 42}')
    shop.push(b'{"key": 142, "trace": "42"}')
    # When 42 is looked for; then both are found, and what only mentions it is not
    assert [(piece.place, piece.key) for piece in look(shop, "42")] == [("tasks", "42"), ("dead", "42")]


def test_portions_meet_each_piece_once_while_others_come_and_go(shop: Workshop) -> None:
    # Given a queue that is read in small portions
    shop.queue(*(b'{"k":"%d"}' % number for number in range(100)))
    met: list[str] = []
    for number, portion in enumerate(portions(shop.client, shop.lane, "detail", Place.REQUESTS, 10)):
        met += [piece.key for piece in portion]
        # When the first are leased meanwhile, and others come before and behind
        shop.lease(12)
        shop.queue(b'{"k":"first%d"}' % number, priority=9)
        if number < 3:
            shop.queue(b'{"k":"last%d"}' % number)
    # Then nothing is met twice, and what was there all the while is met
    assert len(met) == len(set(met))
    still = [piece.key for portion in portions(shop.client, shop.lane, "detail", Place.REQUESTS) for piece in portion]
    assert {key for key in still if not key.startswith("first")} <= set(met)
