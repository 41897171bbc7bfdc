"""The contract of every dupefilter: new once, known after; and what each forgets, or errs, on purpose."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import redis

from store.workshop import Workshop
from threadmill.model.keys import Lane
from threadmill.store.calls import run
from threadmill.store.filters import (
    BloomFilter,
    Dupefilter,
    ExactFilter,
    NoFilter,
    RunFilter,
    SetFilter,
    VersionedFilter,
    WindowFilter,
    fingerprint,
    see,
)
from threadmill.store.work import Child, Park

ROOT = Lane("bbs").stage("detail").seen
FILTERS: dict[str, Dupefilter] = {
    "run": RunFilter(),
    "exact": ExactFilter(buckets=64),
    "set": SetFilter(),
    "bloom": BloomFilter(capacity=10_000, error=1e-6),
    "window": WindowFilter(),
    "versioned": VersionedFilter(buckets=64),
}


def new(client: redis.Redis, dupefilter: Dupefilter, texts: Sequence[str], run_id: str = "r1") -> list[bool]:
    """Ask the filter about texts, 1,000 a call."""
    answers: list[bool] = []
    for at in range(0, len(texts), 1000):
        pairs = [(text, "") for text in texts[at : at + 1000]]
        answers += [seen.new for seen in run(client, see(dupefilter, ROOT, pairs, run_id))]
    return answers


@pytest.fixture(params=sorted(FILTERS))
def dupefilter(request: pytest.FixtureRequest) -> Dupefilter:
    return FILTERS[request.param]


def test_an_id_is_new_once_and_known_after(client: redis.Redis, dupefilter: Dupefilter) -> None:
    # Given an empty filter; when an id is added three times; then it was new the first time only
    assert new(client, dupefilter, ["post/1", "post/1"]) == [True, False]
    assert new(client, dupefilter, ["post/1", "post/2"]) == [False, True]


def test_many_ids_are_told_apart(client: redis.Redis, dupefilter: Dupefilter) -> None:
    # Given 3,000 ids that differ in one digit, some of them longer and not ASCII
    texts = [f"post/{n}" for n in range(2_700)] + [f"https://bbs.example/게시판/{n}" for n in range(300)]
    # When they are added twice; then all are new, and then none is
    assert all(new(client, dupefilter, texts))
    assert not any(new(client, dupefilter, texts))


def test_filters_of_two_stages_do_not_meet(client: redis.Redis, dupefilter: Dupefilter) -> None:
    # Given an id known in one stage
    new(client, dupefilter, ["post/1"])
    # When another stage asks for it; then it is new there
    other = Lane("bbs").stage("comment").seen
    assert run(client, see(dupefilter, other, [("post/1", "")], "r1"))[0].new


def test_fingerprints_are_stable_64_bit_numbers() -> None:
    assert fingerprint("post/1") == fingerprint(b"post/1")
    assert fingerprint("post/1") != fingerprint("post/2")
    assert all(-(2**63) <= int(fingerprint(str(n))) < 2**63 for n in range(1_000))
    # Fixed for ever: a new release must know what an older one remembered.
    assert fingerprint("post/1") == "8813067288029642780"


def test_no_filter_knows_nothing(client: redis.Redis) -> None:
    assert new(client, NoFilter(), ["a", "a"]) == [True, True]
    assert client.keys("*") == []


def test_exact_filter_keeps_its_buckets_as_intsets(client: redis.Redis) -> None:
    # Given 2,000 ids in 8 buckets; then every bucket is an intset, which is what makes them small
    new(client, ExactFilter(buckets=8), [str(n) for n in range(2_000)])
    keys = client.keys(f"{ROOT}:*")
    assert len(keys) == 8
    assert {client.object("ENCODING", key) for key in keys} == {b"intset"}


def test_exact_filter_forgets_one_id_of_many(client: redis.Redis) -> None:
    # Given 5,000 ids; when one is taken out of its bucket (docs/redis-keys.md); then it alone is new
    texts = [f"post/{n}" for n in range(5_000)]
    new(client, ExactFilter(), texts)
    gone = fingerprint(texts[42])
    assert client.srem(f"{ROOT}:{int(gone[-7:]) % 4096}", gone) == 1
    assert [n for n, one in enumerate(new(client, ExactFilter(), texts)) if one] == [42]


@pytest.mark.parametrize("error", [0.01, 0.001])
def test_bloom_filter_errs_less_than_stated_and_never_forgets(client: redis.Redis, error: float) -> None:
    # Given a filter that has to grow four layers to hold 20,000 ids
    dupefilter = BloomFilter(capacity=1_500, error=error)
    texts = [f"post/{n}" for n in range(20_000)]
    # When they are added
    wrong = new(client, dupefilter, texts).count(False)
    # Then at most the stated share was called known, and all are known ever after
    assert wrong <= error * len(texts)
    assert not any(new(client, dupefilter, texts))
    assert int(client.hget(f"{ROOT}:bloom", "layer")) >= 3


def test_window_forgets_by_age(client: redis.Redis) -> None:
    dupefilter = WindowFilter(age_ms=10_000, size=0)
    # Given three ids, one of which was last met longer ago than the window's age
    new(client, dupefilter, ["old", "young", "new"])
    client.zincrby(f"{ROOT}:window", -10_001, fingerprint("old"))
    client.zincrby(f"{ROOT}:window", -5_000, fingerprint("young"))
    # When they are met again; then the old one is new, and the meeting counts for the others
    assert new(client, dupefilter, ["old", "young", "new"]) == [True, False, False]
    client.zincrby(f"{ROOT}:window", -9_000, fingerprint("young"))
    assert new(client, dupefilter, ["young"]) == [False]


def test_window_drops_what_is_too_old_even_if_never_met_again(client: redis.Redis) -> None:
    dupefilter = WindowFilter(age_ms=10_000, size=0)
    # Given 50 ids that are too old
    new(client, dupefilter, [f"old/{n}" for n in range(50)])
    for member in client.zrange(f"{ROOT}:window", 0, -1):
        client.zincrby(f"{ROOT}:window", -20_000, member)
    # When another id comes; then they hold no memory any more
    new(client, dupefilter, ["fresh"])
    assert client.zcard(f"{ROOT}:window") == 1


def test_window_forgets_by_size(client: redis.Redis) -> None:
    dupefilter = WindowFilter(age_ms=0, size=3)
    # Given a full window whose ids came one ms after another
    new(client, dupefilter, ["a", "b", "c"])
    for age, text in enumerate(["c", "b", "a"], 1):
        client.zincrby(f"{ROOT}:window", -age, fingerprint(text))
    # When a fourth id comes; then the oldest is forgotten, and only that
    assert new(client, dupefilter, ["d"]) == [True]
    assert client.zcard(f"{ROOT}:window") == 3
    assert new(client, dupefilter, ["b", "c", "d"]) == [False] * 3
    assert new(client, dupefilter, ["a"]) == [True]


def test_window_forgets_by_hits(client: redis.Redis) -> None:
    # Given a window that forgets an id after turning it away twice; then every third meeting is new
    dupefilter = WindowFilter(age_ms=0, size=0, hits=2)
    assert new(client, dupefilter, ["a"] * 7) == [True, False, False, True, False, False, True]


def test_versioned_filter_calls_a_moved_version_new(client: redis.Redis) -> None:
    dupefilter = VersionedFilter()

    def ask(version: str) -> tuple[bool, str]:
        answer = run(client, see(dupefilter, ROOT, [("post/1", version)]))[0]
        return answer.new, answer.known

    # Given a post of 3 comments; when it moves to 5, then it is new again; nothing was done, so nothing is told
    assert ask("3") == (True, "")
    assert ask("3") == (False, "3")
    assert ask("5") == (True, "")
    assert ask("5") == (False, "5")


def test_run_filter_is_of_one_run(client: redis.Redis) -> None:
    # Given an id known in one run; then it is new in another
    new(client, RunFilter(), ["a"], "r1")
    assert new(client, RunFilter(), ["a"], "r2") == [True]


def run_keys(shop: Workshop) -> list[bytes]:
    return shop.client.keys(f"{shop.keys.seen}:run:*")


def test_run_filter_is_forgotten_when_the_run_is_over(shop: Workshop) -> None:
    # Given a run of a root page with two children
    shop.start("42", b"root")
    children = [Child(b"one", fingerprint("one")), Child(b"two", fingerprint("two"))]
    shop.commit(shop.lease_one(), fingerprint=fingerprint("root"), children=children)
    assert len(run_keys(shop)) == 1
    # When the first child is done, then the run is remembered; when the second is done, then it is not
    shop.commit(shop.lease_one())
    assert len(run_keys(shop)) == 1
    shop.commit(shop.lease_one())
    assert run_keys(shop) == []
    assert shop.client.hlen(shop.keys.runs) == 0


def test_a_parked_page_keeps_its_run_open(shop: Workshop) -> None:
    # Given a run of two pages, one of which is parked
    shop.start("42", b"root")
    children = [Child(b"one", fingerprint("one")), Child(b"two", fingerprint("two"))]
    shop.commit(shop.lease_one(), fingerprint=fingerprint("root"), children=children)
    parked, done = shop.lease(2)
    shop.run(shop.store.park([Park(parked.id, "gone", "")]))
    shop.commit(done)
    # Then what the run has seen is kept, until the page is replayed and done
    assert len(run_keys(shop)) == 1
    shop.run(shop.store.replay(shop.letters()))
    shop.commit(shop.lease_one(), children=[Child(b"root again", fingerprint("root"))])
    assert run_keys(shop) == []
    assert shop.books.requests == 0
