"""What operators say of a stage, and what a lease call makes of it."""

from __future__ import annotations

from store.workshop import Workshop
from threadmill.store.control import CONCURRENCY, DRAINING, PAUSED, said, say, set_rate
from threadmill.store.work import Marks


def order(shop: Workshop, **fields: str | None) -> None:
    say(shop.client, [shop.lane], "detail", fields)


def test_a_paused_stage_leases_nothing_and_says_why(shop: Workshop) -> None:
    shop.queue(b"a", b"b")
    order(shop, **{PAUSED: "1"})
    leased = shop.ask(2)
    assert (leased.leases, leased.waiting, leased.state) == ([], 2, "paused")
    assert (shop.books.paused, shop.books.draining) == (True, False)
    # And goes on when that is taken back
    order(shop, **{PAUSED: None})
    assert len(shop.lease(2)) == 2


def test_a_draining_stage_leases_and_says_so(shop: Workshop) -> None:
    shop.queue(b"a")
    order(shop, **{DRAINING: "1"})
    leased = shop.ask(2)
    assert (len(leased.leases), leased.state, shop.books.draining) == (1, "draining", True)


def test_who_asks_for_nothing_hears_what_operators_want(shop: Workshop) -> None:
    # Given work, and a word on the concurrency; when nothing is asked for; then nothing is taken
    shop.queue(b"a")
    order(shop, **{CONCURRENCY: "3"})
    leased = shop.ask(0)
    assert (leased.leases, leased.state, leased.concurrency) == ([], "", 3)
    assert said(shop.client, shop.lane, "detail", CONCURRENCY) == "3"
    order(shop, **{CONCURRENCY: None, PAUSED: "1"})
    leased = shop.ask(0)
    assert (leased.state, leased.concurrency) == ("paused", None)
    assert said(shop.client, shop.lane, "detail", CONCURRENCY) is None
    assert shop.books.requests == 1


def test_who_asks_for_nothing_hears_that_the_stage_is_held(shop: Workshop) -> None:
    # Given a stage that is held by items nobody stores
    marks = Marks(items_high=1, items_low=0)
    shop.queue(b"a", b"b")
    shop.commit(shop.lease_one(), items=[b"{}"])
    assert shop.ask(1, marks=marks).state == "held:items"
    # When a worker asks for nothing; then it hears the same, but not without marks
    assert shop.ask(0, marks=marks).state == "held:items"
    assert shop.ask(0).state == ""


def test_a_new_rate_counts_at_once(shop: Workshop) -> None:
    # Given a rate of one page in 100 s, whose place in time is far ahead
    shop.queue(*(b"%d" % n for n in range(5)))
    set_rate(shop.client, shop.lane, ["list", "detail"], 0.01)
    assert len(shop.lease(5)) == 1
    leased = shop.ask(5)
    assert leased.leases == []
    assert leased.look_again_ms > 50_000
    # When the rate is raised; then the next page need not wait for the old place
    set_rate(shop.client, shop.lane, ["list", "detail"], 1.0)
    assert len(shop.lease(5)) == 1
    # And when it is the source's own again, that holds
    set_rate(shop.client, shop.lane, ["list", "detail"], None)
    assert len(shop.lease(5, interval_us=0)) == 3


def test_what_makes_no_sense_changes_nothing(shop: Workshop) -> None:
    # Given fields that somebody wrote by hand
    shop.queue(b"a", b"b")
    for value in ("much", "-3", ""):
        order(shop, **{CONCURRENCY: value, PAUSED: "yes", "rate": value})
        # Then work goes on as ever
        leased = shop.ask(0)
        assert (leased.state, leased.concurrency) == ("", None)
    assert len(shop.lease(2)) == 2
