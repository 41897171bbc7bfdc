"""lease: taking requests, at the site's pace."""

from __future__ import annotations

import itertools
import random

import pytest
import redis

from store.workshop import EXPIRED_MS, LONG_MS, Workshop, payloads
from threadmill.store.work import Delay, Leased, PageCommit

numbers = itertools.count(1)


def look(shop: Workshop, want: int = 1, *, interval_us: int = 0, number: int = 0) -> Leased:
    """Ask for leases; with a `number`, as the call of that number."""
    number = number or next(numbers)
    return shop.run(shop.store.lease(want, worker="look", number=number, ttl_ms=LONG_MS, interval_us=interval_us))


def clock_us(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return seconds * 1_000_000 + micros


def test_requests_are_leased_for_a_time_on_redis_clock(shop: Workshop) -> None:
    # Given three requests; when two are leased for a minute
    shop.queue(b"a", b"b", b"c")
    before = clock_us(shop.client) // 1000
    leased = look(shop, 2)
    # Then one still waits, and the leases expire in a minute
    assert (payloads(leased.leases), leased.waiting) == ([b"a", b"b"], 1)
    assert (shop.books.requests, shop.books.leased) == (1, 2)
    expiries = [score for _, score in shop.client.zrange(shop.keys.leases, 0, -1, withscores=True)]
    assert all(before + LONG_MS <= expiry <= before + LONG_MS + 5_000 for expiry in expiries)


def test_an_empty_queue_gives_nothing(shop: Workshop) -> None:
    assert look(shop, 5) == Leased([], 0, -1)


def test_lease_twice_with_one_token_gives_the_same_leases(shop: Workshop) -> None:
    # Given a lease whose answer was lost
    shop.queue(b"a", b"b", b"c")
    first = look(shop, 2, number=1)
    # When it is asked again; then the same two are given and no more are taken
    assert look(shop, 2, number=1) == first
    assert shop.books.leased == 2


@pytest.mark.parametrize("settled", [0, 1])
def test_a_repeated_lease_never_overwrites_another(shop: Workshop, settled: int) -> None:
    # Given two leases of one call, one of them settled, and more requests waiting
    shop.queue(b"a", b"b", b"c", b"d")
    leases = look(shop, 2, number=1).leases
    shop.commit(leases[settled])
    # When the call comes again; then it gives the one that is left, and takes nothing
    assert look(shop, 2, number=1).leases == [leases[1 - settled]]
    assert (shop.books.requests, shop.books.leased, shop.books.done) == (2, 1, 1)


def test_a_repeated_lease_of_a_forgotten_worker_gives_the_same_leases(shop: Workshop) -> None:
    # Given a worker that was forgotten while it held leases; when its call comes again; then nothing more is taken
    shop.queue(b"a", b"b", b"c", b"d")
    first = look(shop, 2, number=1).leases
    shop.client.delete(shop.keys.reports)
    assert look(shop, 2, number=1).leases == first
    assert shop.books.leased == 2


def test_delayed_requests_come_back_when_they_are_due(shop: Workshop) -> None:
    # Given a page that waits for a minute
    shop.queue(b"slow")
    shop.run(shop.store.delay([Delay(shop.lease_one().id, LONG_MS, "http-500", "")], max_failures=5))
    # When somebody looks; then it is not given, and he is told when to look again
    leased = look(shop, 5)
    assert leased.leases == []
    assert 0 < leased.look_again_ms <= LONG_MS
    # When it is due (its time is moved to now); then it is given
    (member,) = shop.client.zrange(shop.keys.delayed, 0, -1)
    shop.client.zincrby(shop.keys.delayed, -LONG_MS, member)
    assert payloads(shop.lease(5)) == [b"slow"]
    assert shop.books.delayed == 0


def test_a_paused_stage_gives_nothing(shop: Workshop) -> None:
    # Given a paused stage; then nothing is leased until it goes on
    shop.queue(b"a")
    shop.client.hset(shop.keys.control, "paused", 1)
    assert shop.books.paused
    assert look(shop).leases == []
    shop.client.hset(shop.keys.control, "paused", 0)
    assert payloads(look(shop).leases) == [b"a"]


def test_a_paused_site_gives_nothing_until_its_time(shop: Workshop) -> None:
    # Given a site that said: come back in a minute
    shop.queue(b"a", b"b")
    lease = shop.lease_one()
    shop.run(shop.store.delay([Delay(lease.id, 0, "http-429", "", pause_ms=LONG_MS)], max_failures=5))
    # When somebody looks; then nothing is given and he is told when
    leased = look(shop, 5)
    assert leased.leases == []
    assert LONG_MS - 5_000 < leased.look_again_ms <= LONG_MS
    # When the time has come; then work goes on
    shop.client.hincrby(shop.lane.site, "paused_until", -LONG_MS)
    assert len(look(shop, 5).leases) == 2


def test_a_shorter_pause_does_not_end_a_longer_one(shop: Workshop) -> None:
    shop.queue(b"a", b"b")
    for lease, pause in zip(shop.lease(2), (LONG_MS, 1), strict=True):
        shop.run(shop.store.delay([Delay(lease.id, 0, "http-429", "", pause_ms=pause)], max_failures=5))
    assert look(shop).look_again_ms > LONG_MS - 5_000


@pytest.mark.parametrize("rate", [2, 7.5, 40, 300])
def test_a_site_is_asked_no_more_often_than_its_rate(shop: Workshop, rate: float) -> None:
    """In any time t from the start, no more than rate·t + burst; burst is a tenth of a second's worth, at least one."""
    rng = random.Random(rate)
    shop.queue(*[b"%d" % n for n in range(1_500)])
    granted, passed_us, start = 0, 0, clock_us(shop.client)
    for _ in range(150):
        # Given that some time passes (the site's next slot moves towards now instead of the clock away from it)
        jump = rng.choice([0, 0, 1_000, 30_000, 150_000, 400_000])
        if next_us := shop.client.hget(shop.lane.site, "next_us"):
            shop.client.hset(shop.lane.site, "next_us", int(next_us) - jump)
            passed_us += jump
        # When replicas lease as much as they can
        leased = look(shop, rng.randint(1, 30), interval_us=round(1e6 / rate))
        granted += len(leased.leases)
        # Then the site's rate is kept
        elapsed_s = (clock_us(shop.client) - start + passed_us) / 1e6
        assert granted <= rate * elapsed_s * 1.001 + max(1.0, rate / 10)
        if not leased.leases:
            assert leased.look_again_ms >= 1


@pytest.mark.parametrize("rate", [2, 40])
def test_a_site_is_asked_as_often_as_its_rate_allows(shop: Workshop, rate: float) -> None:
    # Given 10 s in steps of 50 ms; when as much as possible is leased; then the rate is reached
    shop.queue(*[b"%d" % n for n in range(600)])
    granted = 0
    for _ in range(200):
        if next_us := shop.client.hget(shop.lane.site, "next_us"):
            shop.client.hset(shop.lane.site, "next_us", int(next_us) - 50_000)
        granted += len(look(shop, 30, interval_us=round(1e6 / rate)).leases)
    assert granted >= rate * 10 * 0.9


def test_the_live_rate_overrules_the_sources(shop: Workshop) -> None:
    # Given a source that allows a page a second, and an operator's 0 = no limit; then there is none
    shop.queue(*[b"%d" % n for n in range(60)])
    shop.client.hset(shop.keys.control, "rate", 0)
    assert len(look(shop, 20, interval_us=1_000_000).leases) == 20
    # Given 50 pages/s instead; then a tenth of a second's worth is given
    shop.client.hset(shop.keys.control, "rate", 50)
    assert len(look(shop, 20, interval_us=1_000_000).leases) == 5
    # Given what is no rate; then the source's holds, and leasing does not fail
    shop.client.hset(shop.keys.control, "rate", "fast")
    shop.client.delete(shop.lane.site)
    assert len(look(shop, 20, interval_us=1_000_000).leases) == 1


def test_a_repeated_lease_takes_no_second_slot(shop: Workshop) -> None:
    shop.queue(b"a", b"b")
    look(shop, 1, interval_us=1_000_000)
    slot = shop.client.hget(shop.lane.site, "next_us")
    look(shop, 1, interval_us=1_000_000)
    assert shop.client.hget(shop.lane.site, "next_us") == slot


def test_renew_keeps_leases_and_names_the_lost(shop: Workshop) -> None:
    # Given a lease that has just expired, and one that another worker took over
    shop.queue(b"a", b"b")
    mine, lost = shop.lease(2, ttl_ms=EXPIRED_MS)
    shop.client.zadd(shop.keys.leases, {mine.id: 9e12})
    shop.reclaim()
    shop.client.zadd(shop.keys.leases, {mine.id: 0})
    # When both are renewed; then the first is held again, and the other is named
    assert shop.run(shop.store.renew([mine.id, lost.id], ttl_ms=LONG_MS)) == [lost.id]
    assert shop.client.zscore(shop.keys.leases, lost.id) is None
    assert shop.reclaim()[0] == 0
    assert shop.commit(mine).ok


def test_release_gives_back_untouched(shop: Workshop) -> None:
    # Given three leases; when two are given back, twice; then they wait as before
    shop.queue(b"a", b"b", b"c")
    leases = shop.lease(3)
    ids = [lease.id for lease in leases[:2]]
    assert shop.run(shop.store.release(ids)) == 2
    assert shop.run(shop.store.release(ids)) == 0
    again = shop.lease(5)
    assert [lease.record for lease in again] == [lease.record for lease in leases[:2]]
    assert not shop.commit(leases[0]).ok


def test_a_late_copy_of_a_lease_call_leases_nothing(shop: Workshop) -> None:
    # Given a lease call whose page was committed, and another page that waits
    shop.queue(b"first", b"second")
    call = shop.store.lease(1, worker="w1", number=7, ttl_ms=LONG_MS)
    (lease,) = shop.run(call).leases
    commit = shop.store.commit([PageCommit(lease.id)])
    assert shop.run(commit)[0].ok
    # When a copy of that call arrives late, and then the commit is said again, as after a lost reply
    late = shop.run(call)
    again = shop.run(commit)
    # Then the second page was not leased under the first one's name, nor committed by it
    assert late.leases == []
    assert not again[0].ok
    assert (shop.books.requests, shop.books.done) == (1, 1)


def test_a_late_copy_of_a_lease_call_that_found_nothing_leases_nothing(shop: Workshop) -> None:
    # Given a lease call that came when nothing waited
    call = shop.store.lease(5, worker="w1", number=7, ttl_ms=LONG_MS)
    assert shop.run(call).leases == []
    # When a copy of it arrives late, with a page waiting
    shop.queue(b"a")
    late = shop.run(call)
    # Then it takes nothing, since nobody waits for its answer; who does is told to ask with another number
    assert (late.leases, late.waiting, late.look_again_ms) == ([], 1, 1)
    assert shop.books.leased == 0
