"""What the task filter remembers: versions, what became of a task and when, and what it forgets again."""

from __future__ import annotations

import pytest
import redis

from store.workshop import Workshop
from threadmill.store.filters import VersionedFilter
from threadmill.store.work import Child, Known


def do(shop: Workshop, key: str, *, gone: bool = False) -> None:
    """Admit and finish the one task that waits, which has one page."""
    (entry,) = shop.read()
    assert shop.admit(entry, key.encode()) == 1
    assert shop.commit(shop.lease_one(), key=key, gone=gone).ok


def known(shop: Workshop, key: str) -> Known | None:
    return shop.run(shop.store.known(key))


def now_s(shop: Workshop) -> int:
    return int(shop.client.time()[0])


def test_a_key_nobody_submitted_is_not_known(shop: Workshop) -> None:
    assert known(shop, "42") is None


def test_a_task_is_known_when_submitted_and_done_when_its_last_page_is(shop: Workshop) -> None:
    # Given a task of two pages, one after the other
    shop.submit("42", version="5")
    assert known(shop, "42") == Known("5", "", 0)
    (entry,) = shop.read()
    shop.admit(entry, b"page 1")
    shop.commit(shop.lease_one(), key="42", children=[Child(b"page 2", "")])
    assert known(shop, "42") == Known("5", "", 0)
    # When its last page is committed
    before = now_s(shop)
    shop.commit(shop.lease_one(), key="42")
    # Then it is done, and one that is submitted again with another version remembers that
    state = known(shop, "42")
    assert state is not None
    assert (state.version, state.outcome) == ("5", "done")
    assert before <= state.at_s <= now_s(shop)
    assert shop.submit("42", version="5") == (0, 1)
    assert shop.submit("42", version="6") == (1, 0)
    assert known(shop, "42") == Known("6", "done", state.at_s, earlier=True)


def test_what_is_gone_is_known_as_gone(shop: Workshop) -> None:
    shop.submit("42", version="5")
    do(shop, "42", gone=True)
    state = known(shop, "42")
    assert state is not None
    assert state.outcome == "gone"


def test_the_version_known_before_is_handed_on_after_a_task_was_done(shop: Workshop) -> None:
    # Given a task that was done at version 5; when it is submitted at version 50
    shop.submit("42", version="5")
    do(shop, "42")
    shop.submit("42", version="50")
    # Then its entry says what was known
    ((_, fields),) = shop.client.xrange(shop.keys.tasks)
    assert fields[b"o"] == b"5"


def test_a_version_cannot_pass_for_a_state(shop: Workshop) -> None:
    # Given versions that begin as the filter's own states do
    for sign in ("\x1e", "\x1f"):
        shop.submit(f"42{sign!r}", version=f"{sign}evil")
        assert known(shop, f"42{sign!r}") == Known("evil", "", 0)


# Rolling: by age, size and hits ---------------------------------------------------------------------------------------


def rolling(client: redis.Redis, **limits: int) -> Workshop:
    return Workshop(client, task_filter=VersionedFilter(buckets=1, **limits))


def age(shop: Workshop, key: str, seconds: int) -> None:
    """Make the filter believe that it met the key so long ago."""
    part = shop.keys.seen_part("v:0")
    value = bytearray(shop.client.hget(part, key))
    assert value[0] == 0x1E
    value[6:10] = (now_s(shop) - seconds).to_bytes(4, "big")
    shop.client.hset(part, key, bytes(value))


def test_by_age_what_was_not_met_is_new_again(client: redis.Redis) -> None:
    # Given an age of one hour and two tasks known, one of them not met for longer
    shop = rolling(client, age_s=3600)
    shop.submit("old", "young", version="1")
    age(shop, "old", 3601)
    age(shop, "young", 3000)
    # When both are met again; then the old one is new, without a version known before, and the other is not
    assert shop.submit("old", version="1") == (1, 0)
    assert shop.submit("young", version="1") == (0, 1)
    assert b"o" not in shop.client.xrange(shop.keys.tasks)[-1][1]
    # And being met made the young one younger
    age_before = 3000
    value = client.hget(shop.keys.seen_part("v:0"), "young")
    assert now_s(shop) - int.from_bytes(value[6:10], "big") < age_before
    shop.audit()


def test_by_age_what_is_never_met_leaves_the_filter(client: redis.Redis) -> None:
    # Given a thousand ids not met for too long
    shop = rolling(client, age_s=3600)
    shop.submit(*(f"old{n}" for n in range(1000)))
    for n in range(1000):
        age(shop, f"old{n}", 4000)
    # When others come, some of whose additions look through the bucket
    part = shop.keys.seen_part("v:0")
    for n in range(500):
        if client.hlen(part) < 1000:
            break
        shop.submit(f"new{n}")
    # Then none of the old ones is left
    left = client.hkeys(part)
    assert [key for key in left if key.startswith(b"old")] == []


def test_by_size_the_one_met_longest_ago_goes(client: redis.Redis) -> None:
    # Given room for three, and three known, of which the first was met last
    shop = rolling(client, size=3)
    shop.submit("a", "b", "c")
    for key, seconds in (("a", 1), ("b", 30), ("c", 20)):
        age(shop, key, seconds)
    # When two more come; then the two met longest ago are forgotten
    shop.submit("d")
    shop.submit("e")
    assert {key.decode() for key in client.hkeys(shop.keys.seen_part("v:0"))} >= {"a", "d", "e"}
    assert shop.run(shop.store.known("b")) is None


@pytest.mark.parametrize("hits", [1, 3])
def test_by_hits_a_task_met_often_enough_is_done_again(client: redis.Redis, hits: int) -> None:
    # Given a task that is known; when it is met again and again
    shop = rolling(client, hits=hits)
    shop.submit("42", version="1")
    answers = [shop.submit("42", version="1") for _ in range(2 * (hits + 1))]
    # Then it is turned away so often, done again, and turned away again
    assert answers == ([(0, 1)] * hits + [(1, 0)]) * 2
