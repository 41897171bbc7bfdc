"""Jobs: finished when nothing of them is open and no more is announced, which is told once; listed; put first."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from store.workshop import LONG_MS, Workshop, payloads
from threadmill.model.keys import Lane
from threadmill.store.calls import run
from threadmill.store.events import EventStreams
from threadmill.store.jobs import Job, all_jobs, announce, find_job, is_stored, prioritize, submitting
from threadmill.store.orders import PRIORITY
from threadmill.store.work import Park
from waiting import wait_for


def finishes(shop: Workshop) -> list[dict[str, str]]:
    """What was told of finished jobs."""
    return [dict(event.fields) for event in EventStreams(shop.client, [shop.lane]).last(100)]


def look(shop: Workshop, job: str) -> Job:
    found = find_job(shop.client, [shop.lane], job)
    assert found is not None
    return found


def hold(shop: Workshop, job: str, ms: int = LONG_MS) -> None:
    shop.run(announce(shop.lane, job, ms))


# Finished -------------------------------------------------------------------------------------------------------------


def test_a_job_is_finished_with_its_last_page_and_says_so_once(shop: Workshop) -> None:
    # Given a job of two pages, of which one is done
    shop.start("1", b"a", job="j1")
    shop.start("2", b"b", job="j1")
    first, second = shop.lease(2)
    shop.commit(first, items=[b"{}"])
    assert (look(shop, "j1").state, finishes(shop)) == ("open", [])
    # When the other is committed, and committed again
    shop.commit(second, items=[b"{}", b"{}"])
    shop.commit(second, items=[b"{}", b"{}"])
    # Then it is finished, and that was told once
    job = look(shop, "j1")
    assert (job.state, job.books.open, job.sources) == ("finished", 0, ("bbs",))
    assert job.begun_at_ms is not None
    assert job.books.finished_at_ms is not None
    assert job.begun_at_ms <= job.books.finished_at_ms
    counts = {"accepted": "2", "done": "2", "dead": "0", "items": "3"}
    assert finishes(shop) == [{"event": "job_finished", "job": "j1", **counts}]
    # And its books are kept for thirty days
    assert 2_591_000 < shop.client.ttl(shop.lane.job("j1")) <= 2_592_000


def test_a_job_that_is_opened_again_finishes_again(shop: Workshop) -> None:
    # Given a job whose only page was parked: nothing of it is open
    shop.start("1", b"a", job="j1")
    shop.run(shop.store.park([Park(shop.lease_one().id, "broken", "it is")]))
    assert [event["dead"] for event in finishes(shop)] == ["1"]
    # When the letter is replayed; then it is open, and its books do not run out
    shop.run(shop.store.replay(shop.letters()))
    assert (look(shop, "j1").state, shop.client.ttl(shop.lane.job("j1"))) == ("open", -1)
    # And it finishes a second time
    shop.commit(shop.lease_one())
    assert [(event["done"], event["dead"]) for event in finishes(shop)] == [("0", "1"), ("1", "0")]


def test_an_announced_job_is_not_finished_between_two_submissions(shop: Workshop) -> None:
    # Given an announced job, of which all that was submitted is done
    hold(shop, "j1")
    shop.start("1", b"a", job="j1")
    shop.commit(shop.lease_one())
    assert (look(shop, "j1").state, shop.job("j1").finished, finishes(shop)) == ("submitting", False, [])
    # When more is submitted and done, and all has been said
    shop.start("2", b"b", job="j1")
    shop.commit(shop.lease_one())
    assert finishes(shop) == []
    hold(shop, "j1", 0)
    hold(shop, "j1", 0)
    # Then it is finished, and that was told once
    assert (look(shop, "j1").state, [event["done"] for event in finishes(shop)]) == ("finished", ["2"])


def test_a_submission_that_dies_leaves_a_job_that_ends(shop: Workshop) -> None:
    # Given a job that was announced for a moment, by somebody who died; what he submitted is done
    hold(shop, "j1", 500)
    shop.start("1", b"a", job="j1")
    shop.commit(shop.lease_one())
    assert finishes(shop) == []
    # When somebody looks at it later; then it is finished, with its event
    wait_for(lambda: look(shop, "j1").books.finished_at_ms, what="the announcement to lapse")
    assert [event["done"] for event in finishes(shop)] == ["1"]


def test_a_submission_that_fails_halfway_ends_its_announcement(shop: Workshop) -> None:
    with pytest.raises(KeyboardInterrupt), submitting(shop.client, [shop.lane], "j1") as go_on:
        go_on()
        shop.submit("1", job="j1")
        raise KeyboardInterrupt
    assert look(shop, "j1").state == "open"


def test_books_are_kept_as_long_as_was_announced(shop: Workshop) -> None:
    shop.run(announce(shop.lane, "j1", LONG_MS, keep_s=60))
    shop.start("1", b"a", job="j1")
    shop.commit(shop.lease_one())
    hold(shop, "j1", 0)
    assert 0 < shop.client.ttl(shop.lane.job("j1")) <= 60


def test_all_is_stored_once_the_item_stream_has_let_go_of_it(shop: Workshop) -> None:
    # Given a finished job with items, and a later commit of another
    shop.start("1", b"a", job="j1")
    shop.commit(shop.lease_one(), items=[b"{}"])
    at = look(shop, "j1").books.finished_at_ms
    assert at is not None
    wait_for(lambda: shop.client.time()[0] * 1000 + shop.client.time()[1] // 1000 > at, what="another millisecond")
    shop.start("2", b"b")
    shop.commit(shop.lease_one(), items=[b"{}"])
    assert not is_stored(shop.client, [shop.lane], at)
    # When the store has settled the first
    ((first, _), _) = shop.client.xrange(shop.lane.items)
    shop.client.xdel(shop.lane.items, first)
    # Then the job is stored, whatever else waits
    assert is_stored(shop.client, [shop.lane], at)


# Listed ---------------------------------------------------------------------------------------------------------------


def listed(shop: Workshop, *lanes: Lane, portion: int = 500) -> list[str]:
    return [job.id for job in all_jobs(shop.client, lanes or [shop.lane], portion)]


def remember(client: redis.Redis, lane: Lane, job: str, begun: int, **fields: Any) -> None:
    client.zadd(lane.jobs, {job: begun})
    client.hset(lane.job(job), mapping={"open": 0, "detail:accepted": 1, "detail:done": 1, "finished_at": 1, **fields})


def test_jobs_are_listed_newest_first_over_all_lanes(client: redis.Redis) -> None:
    # Given jobs of two lanes, one of them in both
    shop, lanes = Workshop(client), (Lane("bbs", 0), Lane("bbs", 1))
    for number in range(30):
        remember(client, lanes[number % 2], f"j{number}", 1000 + number)
    remember(client, lanes[1], "j4", 1001, open=2)
    # When they are listed, in portions of any size; then each is there once, and sums up its lanes
    expected = [f"j{number}" for number in range(29, -1, -1)]
    assert listed(shop, *lanes) == expected
    assert listed(shop, *lanes, portion=4) == expected
    job = find_job(client, lanes, "j4")
    assert job is not None
    assert (job.begun_at_ms, job.books.open, job.books.accepted) == (1001, 2, {"detail": 2})


def test_jobs_whose_books_are_gone_are_forgotten(client: redis.Redis) -> None:
    shop = Workshop(client)
    for number in range(5):
        remember(client, shop.lane, f"j{number}", 1000 + number)
    client.delete(shop.lane.job("j1"), shop.lane.job("j4"))
    assert listed(shop) == ["j3", "j2", "j0"]
    assert client.zcard(shop.lane.jobs) == 3
    assert find_job(client, [shop.lane], "j1") is None


# Put before others ----------------------------------------------------------------------------------------------------


def put(shop: Workshop, job: str, priority: int) -> tuple[int, int]:
    """Give a job its priority; answers how many requests were looked at and how many of them were its."""
    cursor, looked, found = "0", 0, 0
    while True:
        call = prioritize(shop.lane, "detail", PRIORITY, job, priority, cursor)
        cursor, seen, some = run(shop.client, call)
        looked, found = looked + seen, found + some
        if cursor == "0":
            return looked, found


def test_what_waits_of_a_job_gets_its_new_place_and_what_comes_is_placed_so(shop: Workshop) -> None:
    # Given requests of two jobs
    shop.queue(b"a1", b"a2", job="a")
    shop.queue(b"b1", job="b")
    shop.queue(b"b2", job="b", priority=-3)
    # When the second job is put before the first
    assert put(shop, "b", 5) == (4, 2)
    shop.queue(b"b3", job="b")
    shop.queue(b"a3", job="a", priority=4)
    # Then its requests come first, in their own order
    assert payloads(shop.lease(3)) == [b"b1", b"b3", b"a3"]
    assert look(shop, "b").priority == 5
    # And behind all others, or as ever, when that is said
    put(shop, "b", -100)
    assert payloads(shop.lease(2)) == [b"a1", b"a2"]
    shop.queue(b"a4", job="a", priority=-50)
    assert payloads(shop.lease(1)) == [b"a4"]
    assert put(shop, "b", 0) == (1, 1)
    shop.queue(b"a5", job="a", priority=-4)
    assert payloads(shop.lease(2)) == [b"b2", b"a5"]


def test_a_page_that_comes_back_comes_back_to_its_jobs_place(shop: Workshop) -> None:
    # Given a page that was leased before its job was put last; when it is given back; then it is last
    shop.queue(b"b1", job="b")
    lease = shop.lease_one()
    shop.queue(b"a1", job="a")
    put(shop, "b", -1)
    shop.run(shop.store.release([lease.id]))
    assert payloads(shop.lease(2)) == [b"a1", b"b1"]


def test_express_stays_first(shop: Workshop) -> None:
    shop.queue(b"express", priority=1_000_000, job="a")
    shop.queue(b"other", job="b")
    put(shop, "b", 999_999)
    put(shop, "a", -999_999)
    assert payloads(shop.lease(2)) == [b"express", b"other"]


def test_a_long_queue_is_placed_anew_in_portions_and_may_be_broken_off(shop: Workshop) -> None:
    # Given a long queue of two jobs in turn
    for at in range(0, 3000, 500):
        shop.queue(*(b"a%d" % n for n in range(at, at + 500)), job="a")
        shop.queue(*(b"b%d" % n for n in range(at, at + 500)), job="b")
    # When the placing is broken off after one portion, and said again
    cursor, seen, some = run(shop.client, prioritize(shop.lane, "detail", PRIORITY, "b", 7, "0"))
    assert cursor != "0"
    assert 0 < some < seen < 1500
    looked, found = put(shop, "b", 7)
    assert (looked >= 6000, found >= 3000, shop.books.requests) == (True, True, 6000)
    # Then all of the job come first, in their order, and none is lost
    taken = [payload for _ in range(6) for payload in payloads(shop.lease(1000))]
    assert taken == [b"b%d" % n for n in range(3000)] + [b"a%d" % n for n in range(3000)]


def test_a_job_nobody_knows_is_told_so(shop: Workshop) -> None:
    assert run(shop.client, prioritize(shop.lane, "detail", PRIORITY, "j1", 7, "0")) == ("0", 0, -1)
    assert not shop.client.exists(shop.lane.job("j1"))


# Told -----------------------------------------------------------------------------------------------------------------


def test_events_are_read_in_order_over_lanes_and_followed(client: redis.Redis) -> None:
    # Given events in two lanes
    lanes = [Lane("bbs", 0), Lane("bbs", 1)]
    for number in range(4):
        client.xadd(lanes[number % 2].events, {"event": "job_finished", "job": f"j{number}"}, id=f"{1000 + number}-0")
    streams = EventStreams(client, lanes)
    # When the newest are asked for; then they come oldest first
    assert [event.fields["job"] for event in streams.last(3)] == ["j1", "j2", "j3"]
    # And what comes later is met once
    client.xadd(lanes[1].events, {"event": "post_complete", "key": "42", "job": "j9"}, id="2000-0")
    (event,) = streams.wait()
    assert (event.lane, event.at_ms, event.fields) == (
        lanes[1],
        2000,
        {"event": "post_complete", "key": "42", "job": "j9"},
    )
    client.xadd(lanes[0].events, {"event": "job_finished", "job": "j10"}, id="2001-0")
    assert [event.fields["job"] for event in streams.wait()] == ["j10"]
