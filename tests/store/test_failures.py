"""delay, park, reclaim, replay: how failed work is tried again, given up, and taken up again."""

from __future__ import annotations

import pytest

from store.workshop import EXPIRED_MS, LONG_MS, Workshop, payloads
from threadmill.store.calls import run
from threadmill.store.letters import dead_letters
from threadmill.store.work import Admission, Child, Delay, Lease, Park, Refusal
from waiting import wait_for


def delay(shop: Workshop, lease: Lease, *, max_failures: int = 5, wait_ms: int = 0, counts: bool = True) -> int:
    page = Delay(lease.id, wait_ms, "http-500", "status 500", counts=counts)
    return shop.run(shop.store.delay([page], max_failures=max_failures))[0]


# delay ----------------------------------------------------------------------------------------------------------------


def test_a_failed_page_waits_and_its_failures_are_counted(shop: Workshop) -> None:
    # Given a page that fails twice; then it waits each time and comes back with its failures
    shop.start("42", b"root", job="j1")
    for failures in (1, 2):
        assert delay(shop, shop.lease_one()) == 1
        assert (shop.books.delayed, shop.books.leased) == (1, 0)
        lease = shop.lease_one()
        assert (lease.record.failures, lease.record.deliveries, lease.record.job) == (failures, 0, "j1")
        shop.run(shop.store.release([lease.id]))
    assert shop.stat("retried") == 2
    assert shop.job("j1").open == 1


def test_a_page_that_fails_too_often_is_parked(shop: Workshop) -> None:
    # Given a limit of three failures; when a page fails a third time; then it is a dead letter with the last error
    shop.start("42", b"root", job="j1")
    answers = [delay(shop, shop.lease_one(), max_failures=3) for _ in range(3)]
    assert answers == [1, 1, 2]
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert (letter.kind, letter.reason, letter.error) == ("request", "http-500", "status 500")
    assert (letter.job, letter.body) == ("j1", b"root")
    assert (shop.books.dead, shop.books.open, shop.job("j1").open) == (1, 0, 0)


def test_being_told_to_wait_is_no_failure(shop: Workshop) -> None:
    # Given no failure allowed; when a page is told to wait ten times; then it is never parked
    shop.queue(b"a")
    assert [delay(shop, shop.lease_one(), max_failures=0, counts=False) for _ in range(10)] == [1] * 10
    assert shop.lease_one().record.failures == 0


def test_a_second_delay_is_fenced(shop: Workshop) -> None:
    shop.queue(b"a")
    lease = shop.lease_one()
    assert [delay(shop, lease, wait_ms=LONG_MS) for _ in range(2)] == [1, 0]
    assert (shop.books.delayed, shop.stat("retried"), shop.stat("fenced")) == (1, 1, 1)


def test_due_times_are_ms_on_redis_clock(shop: Workshop) -> None:
    # Given waits of different lengths; then each is due that long from now, to the ms
    shop.queue(b"a", b"b")
    for lease, wait in zip(shop.lease(2), (1_234, 3_600_000), strict=True):
        delay(shop, lease, wait_ms=wait)
    seconds, micros = shop.client.time()
    now = seconds * 1000 + micros // 1000
    due = [score for _, score in shop.client.zrange(shop.keys.delayed, 0, -1, withscores=True)]
    assert [round((at - now) / 5_000) for at in due] == [0, 720]
    assert all(at == int(at) for at in due)


# park -----------------------------------------------------------------------------------------------------------------


def test_a_parked_page_is_kept_with_reason_and_error(shop: Workshop) -> None:
    # Given a page that no retry will help; when it is parked twice; then it is parked once
    shop.start("42", b"root", job="j1")
    call = shop.store.park([Park(shop.lease_one().id, "bad\x1freason", "line 1\nline 2\x1f\x00" + "é" * 3_000)])
    assert shop.run(call) == [1]
    assert shop.run(call) == [0]
    # Then its letter shows all, on one line, cut, and nothing in it can be taken for a separator
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert (letter.reason, letter.body, letter.job) == ("bad reason", b"root", "j1")
    assert letter.error.startswith("line 1 line 2  éé")
    assert len(letter.error) < 1_100
    seconds, _ = shop.client.time()
    assert abs(letter.at_ms - seconds * 1000) < 5_000
    assert (shop.job("j1").dead, shop.job("j1").open) == ({"detail": 1}, 0)


# replay ---------------------------------------------------------------------------------------------------------------


def test_replayed_requests_start_afresh(shop: Workshop) -> None:
    # Given a parked page that had failed and killed a worker
    shop.start("42", b"root", job="j1")
    delay(shop, shop.lease_one(ttl_ms=EXPIRED_MS))
    shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim()
    lease = shop.lease_one()
    assert (lease.record.failures, lease.record.deliveries) == (1, 1)
    shop.run(shop.store.park([Park(lease.id, "gone", "")]))
    assert shop.job("j1").finished
    # When it is replayed, twice
    letters = shop.letters()
    assert shop.run(shop.store.replay([*letters, "12345"])) == 1
    assert shop.run(shop.store.replay(letters)) == 0
    # Then it waits, forgiven, in the run and the job it had, which is open again
    assert not shop.job("j1").finished
    again = shop.lease_one()
    assert (again.record.failures, again.record.deliveries) == (0, 0)
    assert (again.record.job, again.record.run) == ("j1", lease.record.run)
    shop.commit(again)
    assert shop.job("j1").finished
    assert (shop.books.dead, shop.books.done, shop.stat("replayed")) == (0, 1, 1)


def test_replayed_work_keeps_the_history_of_its_deaths(shop: Workshop) -> None:
    # Given a page that died of failures, was replayed, and then died with its worker
    shop.start("42", b"root", job="j1")
    delay(shop, shop.lease_one(), max_failures=1)
    shop.run(shop.store.replay(shop.letters()))
    shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim(max_deliveries=1)
    # When it is looked at; then it tells both, crashes and failures apart, oldest first
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert (letter.reason, letter.deliveries, letter.failures, letter.body) == ("crashed", 1, 0, b"root")
    (first,) = letter.history
    assert (first.reason, first.deliveries, first.failures, first.error) == ("http-500", 0, 1, "status 500")
    assert 0 < first.at_ms <= letter.at_ms
    # And replayed again and again, it keeps the last ten
    for n in range(12):
        shop.run(shop.store.replay(shop.letters()))
        shop.run(shop.store.park([Park(shop.lease_one().id, f"reason-{n}", "")]))
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert [death.reason for death in letter.history] == [f"reason-{n}" for n in range(1, 11)]
    assert letter.reason == "reason-11"


def test_a_history_that_nobody_wrote_is_none(shop: Workshop) -> None:
    shop.client.xadd(shop.keys.tasks, {"task": b"x", "h": b"1\x1dmade up\x1e"})
    (entry,) = shop.read()
    shop.run(shop.store.refuse([Refusal(entry, "not-json", "")], express=False))
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert letter.history == ()


def test_a_replayed_task_keeps_the_history_of_its_deaths(shop: Workshop) -> None:
    # Given a task from outside that could not be admitted, twice
    shop.client.xadd(shop.keys.tasks, {"task": b"rubb\x1fish"})
    for reason in ("not-json", "malformed"):
        (entry,) = shop.read()
        shop.run(shop.store.refuse([Refusal(entry, reason, "why")], express=False))
        (letter,) = dead_letters(shop.client, shop.lane, "detail")
        shop.run(shop.store.replay([letter.id]))
    # When it can, and its page dies; then the page's letter tells all three
    (entry,) = shop.read()
    shop.run(shop.store.admit([Admission(entry, "", [(0, b"root")])], express=False))
    shop.run(shop.store.park([Park(shop.lease_one().id, "callback", "")]))
    assert (letter.body, [death.reason for death in letter.history]) == (b"rubb\x1fish", ["not-json"])
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert [death.reason for death in letter.history] == ["not-json", "malformed"]


# reclaim --------------------------------------------------------------------------------------------------------------


def test_expired_leases_are_taken_back(shop: Workshop) -> None:
    # Given a worker that died with two pages, and one that lives
    shop.queue(b"a", b"b", b"c")
    shop.lease(2, ttl_ms=EXPIRED_MS)
    alive = shop.lease_one()
    # When leases are reclaimed twice; then the dead one's pages wait again, their deliveries counted
    assert shop.reclaim() == (2, 0, 0)
    assert shop.reclaim() == (0, 0, 0)
    assert [(lease.record.payload, lease.record.deliveries) for lease in shop.lease(5)] == [(b"a", 1), (b"b", 1)]
    assert shop.commit(alive).ok
    assert shop.stat("reclaimed") == 2


def test_a_page_that_kills_its_workers_is_parked_at_the_limit(shop: Workshop) -> None:
    # Given at most three deliveries; when a page's worker dies for the third time; then the page is parked
    shop.start("42", b"root", job="j1")
    answers = []
    for _ in range(3):
        # (From the second death on it is a suspect, and comes back a little later.)
        wait_for(lambda: shop.lease(1, ttl_ms=EXPIRED_MS), seconds=5, what="the page to come back")
        answers.append(shop.reclaim(max_deliveries=3))
    assert answers == [(1, 0, 0), (1, 0, 0), (0, 1, 0)]
    (letter,) = dead_letters(shop.client, shop.lane, "detail")
    assert (letter.reason, letter.error) == ("crashed", "its worker died 3 times")
    assert shop.job("j1").dead == {"detail": 1}


def test_crashes_and_failures_are_counted_apart(shop: Workshop) -> None:
    shop.queue(b"a")
    shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim()
    delay(shop, shop.lease_one())
    record = shop.lease_one().record
    assert (record.deliveries, record.failures) == (1, 1)


def test_reclaim_takes_no_more_than_asked(shop: Workshop) -> None:
    shop.queue(*[b"%d" % n for n in range(5)])
    shop.lease(5, ttl_ms=EXPIRED_MS)
    assert [shop.reclaim(limit=2)[0] for _ in range(4)] == [2, 2, 1, 0]


def test_an_expiry_without_a_request_stops_nothing(shop: Workshop) -> None:
    # Given an expiry that somebody left behind, in front of a real one
    shop.queue(b"a")
    shop.client.zadd(shop.keys.leases, {"ghost.1": 1})
    shop.lease_one(ttl_ms=EXPIRED_MS)
    # When leases are reclaimed; then the real one is, and the other is gone
    assert shop.reclaim() == (1, 0, 0)
    assert payloads(shop.lease(5)) == [b"a"]


# many at once ---------------------------------------------------------------------------------------------------------


def test_batches_of_thousands(shop: Workshop) -> None:
    """Lua unpacks at most some thousands of values: no verb may depend on how much travels in one call."""
    # Given 4,500 tasks in one call, and one task with 4,500 roots
    shop.start("root", *[b"%d" % n for n in range(4_500)])
    assert shop.submit(*[str(n) for n in range(4_500)]) == (4_500, 0)
    # When 10,000 are asked for at once; then a thousand are given and none is lost
    leases = shop.lease(10_000)
    assert len(leases) == 1_000
    assert (shop.books.requests, shop.books.leased) == (3_500, 1_000)
    for _ in range(4):
        leases += shop.lease(1_000)
    ids = [lease.id for lease in leases]
    assert len(set(ids)) == 4_500
    # Then thousands are renewed, committed, delayed, given back, parked, reclaimed and replayed in one call each
    assert shop.run(shop.store.renew(ids, ttl_ms=LONG_MS)) == []
    assert shop.run(shop.store.release(ids[1:])) == 4_499
    assert shop.commit(leases[0], children=[Child(b"c", str(n)) for n in range(4_500)]).queued == 4_500
    leases = [lease for _ in range(9) for lease in shop.lease(1_000, ttl_ms=EXPIRED_MS)]
    assert shop.run(shop.store.delay([Delay(x.id, 0, "r", "e") for x in leases[:4_000]], max_failures=5)) == [1] * 4_000
    assert shop.run(shop.store.park([Park(lease.id, "r", "e") for lease in leases[4_000:8_000]])) == [1] * 4_000
    assert shop.reclaim(limit=10_000) == (999, 0, 0)
    assert shop.run(shop.store.replay(shop.letters())) == 4_000
    assert shop.books.open == 4_499 + 8_999 + 1


@pytest.mark.parametrize("want", [0, 1])
def test_a_lease_of_nothing_brings_nothing(shop: Workshop, want: int) -> None:
    shop.queue(b"a")
    assert len(shop.lease(want)) == want


def test_a_dropped_letter_counts_as_done_and_closes_its_run(shop: Workshop) -> None:
    # Given a run of two pages, one of them parked
    shop.start("42", b"a", b"b", job="j1")
    parked, other = shop.lease(2)
    shop.run(shop.store.park([Park(parked.id, "callback", "bug")]))
    call = shop.store.drop(shop.letters())
    # When the letter is dropped, twice
    assert [run(shop.client, call), run(shop.client, call)] == [1, 0]
    # Then it counts as done, for the stage and the job, and the run ends with the other page
    assert (shop.books.dead, shop.books.done, shop.stat("dropped")) == (0, 1, 1)
    shop.commit(other)
    assert shop.books.balanced
    assert shop.job("j1").finished
    assert not shop.client.exists(shop.keys.runs)


def test_a_letter_that_cannot_be_read_stays_until_it_is_dropped(shop: Workshop) -> None:
    # Given a page that was parked, and a letter whose bytes somebody spoilt
    for _ in range(2):
        shop.start("42", b"page")
        shop.run(shop.store.park([Park(shop.lease_one().id, "http-403", "no")]))
    readable, spoilt = shop.letters()
    shop.client.hset(shop.keys.dead, spoilt, b"\xff no letter")
    # When both are replayed; then the one goes back to work and the other stays
    assert shop.run(shop.store.replay([readable, spoilt])) == 1
    assert shop.letters() == [spoilt]
    # And it can be given up
    assert shop.run(shop.store.drop([spoilt])) == 1
    assert shop.books.balanced
