"""threadmill trace: each state that a post can be in, as an operator reads it and as a script does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commands.operator import Operator
from store.workshop import EXPIRED_MS, Workshop
from threadmill.model.stages import COMMENT
from threadmill.store.work import Delay, Park, Refusal

POST = "4711"
PAGE = b'{"k":"4711"}'

Given = Callable[[Workshop], Any]


def never(shop: Workshop) -> None:
    shop.submit("4710", "47110", job="7")


def waiting(shop: Workshop) -> None:
    shop.submit("4709", "4710", POST, job="7", version="3")


def express(shop: Workshop) -> None:
    shop.submit(POST, job="7", express=True, force=True)


def read(shop: Workshop) -> None:
    shop.submit(POST, job="7")
    shop.read("w1")


def queued(shop: Workshop) -> None:
    shop.queue(b'{"k":"1"}')
    shop.start(POST, PAGE, job="7")


def leased(shop: Workshop) -> None:
    shop.start(POST, PAGE, job="7")
    shop.lease(1, token="w1-77-abcd")


def overdue(shop: Workshop) -> None:
    shop.start(POST, PAGE, job="7")
    shop.lease(1, token="w1-77-abcd", ttl_ms=EXPIRED_MS)


def delayed(shop: Workshop) -> None:
    shop.start(POST, PAGE, job="7")
    shop.run(shop.store.delay([Delay(shop.lease_one().id, 60_000, "http-500", "no")], max_failures=5))


def dead(shop: Workshop) -> None:
    shop.start(POST, PAGE, job="7")
    shop.run(shop.store.park([Park(shop.lease_one().id, "http-403", "the site said no")]))


def refused(shop: Workshop) -> None:
    shop.push({"key": POST})
    (entry,) = shop.read()
    shop.run(shop.store.refuse([Refusal(entry, "refused-key", "it does not match")], express=False))


def replayed(shop: Workshop) -> None:
    dead(shop)
    shop.run(shop.store.replay(shop.letters()))


def done(shop: Workshop) -> None:
    shop.submit(POST, job="7", version="3")
    (entry,) = shop.read()
    shop.admit(entry, PAGE)
    shop.commit(shop.lease_one(), key=POST)


def gone(shop: Workshop) -> None:
    shop.start(POST, PAGE, job="7")
    shop.commit(shop.lease_one(), key=POST, outcome="gone", gone=True)


def done_and_waiting(shop: Workshop) -> None:
    done(shop)
    shop.submit(POST, job="8", version="5")


def dropped(shop: Workshop) -> None:
    dead(shop)
    shop.run(shop.store.drop(shop.letters()))


def moved_and_dropped(shop: Workshop) -> None:
    done_and_waiting(shop)
    (entry,) = shop.read()
    shop.run(shop.store.refuse([Refusal(entry, "refused-key", "it does not match")], express=False))
    shop.run(shop.store.drop(shop.letters()))


STATES = [
    (never, "never seen", "", "never seen"),
    (waiting, "waiting", "tasks", "its task waits in the task stream, 2 before it, since"),
    (express, "express", "express", "its task waits in the express stream, next, since"),
    (read, "waiting", "tasks", "its task was read from the task stream by w1, which has not admitted it yet; job 7"),
    (queued, "queued", "requests", "page 1 waits in the request queue, 1 before it; job 7"),
    (leased, "leased", "leased", "page 1 is leased by w1-77-abcd, until"),
    (overdue, "leased", "leased", "that is over, and another worker will take it"),
    (delayed, "delayed", "delayed", "it failed once so far"),
    (dead, "dead", "dead", "http-403: the site said no; job 7"),
    (refused, "dead", "dead", "its task is dead since"),
    (replayed, "queued", "requests", "replayed after it was dead: http-403,"),
    (done, "done", "", "ago), at version 3"),
    (gone, "gone", "", "there is no such thing any more"),
    (done_and_waiting, "waiting", "tasks", "before that, done"),
    (moved_and_dropped, "known", "", "submitted again, at version 5, not done, and nowhere now"),
    (dropped, "known", "", "submitted once, not done, and nowhere now"),
]


@pytest.mark.parametrize(("given", "state", "queue", "sentence"), STATES, ids=[case[0].__name__ for case in STATES])
def test_a_post_is_found_wherever_it_is(
    shop: Workshop, threadmill: Operator, given: Given, state: str, queue: str, sentence: str
) -> None:
    # Given a post in some state; when it is looked for
    given(shop)
    told = threadmill("trace", POST, "--stage", "detail")
    exact = threadmill("trace", POST, "--stage", "detail", "--json")
    # Then its state is told in words and exactly, and the exit status says whether it is known
    assert told.status == exact.status == (1 if state == "never seen" else 0)
    assert f"post {POST}  {state}" in told.out
    assert sentence in told.out
    [stage] = exact.json["stages"]
    assert (exact.json["found"], stage["state"]) == (state != "never seen", state)
    assert [piece["queue"] for piece in stage["pieces"]] == ([queue] if queue else [])
    jobs = {done_and_waiting: "8", refused: None}
    for piece in stage["pieces"]:
        assert (piece["key"], piece["source"], piece["job"]) == (POST, "bbs", jobs.get(given, "7"))


def test_what_a_script_reads_of_a_page_that_fails(shop: Workshop, threadmill: Operator) -> None:
    # Given a page that was replayed once, and has failed and killed a worker since
    replayed(shop)
    lease = shop.lease_one(ttl_ms=EXPIRED_MS)
    shop.reclaim()
    lease = shop.lease_one()
    shop.run(shop.store.delay([Delay(lease.id, 60_000, "http-500", "no")], max_failures=5))
    # When it is looked for; then everything is there
    [stage] = threadmill("trace", POST, "--stage", "detail", "--json").json["stages"]
    [piece] = stage["pieces"]
    assert (piece["page"], piece["deliveries"], piece["failures"]) == (1, 1, 1)
    assert piece["due"] > piece["history"][0]["at"]
    assert [death["reason"] for death in piece["history"]] == ["http-403"]


def test_all_stages_are_looked_through_and_every_piece_is_told(shop: Workshop, threadmill: Operator) -> None:
    # Given a post that is done, of whose comments three pages are under way
    done(shop)
    comments = Workshop(shop.client, COMMENT)
    comments.start(POST, *(b'{"k":"4711","n":%d}' % page for page in (1, 2, 3)), job="7")
    comments.run(comments.store.park([Park(comments.lease_one().id, "unreadable", "no rows")]))
    comments.lease(1, token="w2-78-abcd")
    # When it is looked for
    stages = {stage["stage"]: stage for stage in threadmill("trace", POST, "--json").json["stages"]}
    # Then each stage says what it knows
    assert {name: stage["state"] for name, stage in stages.items()} == {
        "list": "never seen",
        "detail": "done",
        "comment": "leased",
    }
    pieces = stages["comment"]["pieces"]
    assert {(piece["page"], piece["queue"]) for piece in pieces} == {(1, "dead"), (2, "leased"), (3, "requests")}
    letter = next(piece["letter"] for piece in pieces if piece["queue"] == "dead")
    assert threadmill("dead", "show", "comment", "--id", letter).status == 0


def test_partitions_are_all_looked_through(shop: Workshop, threadmill: Operator) -> None:
    # Given a post whose board lies in lane bbs.0, and so does it, whatever its own hash says
    threadmill.set("THREADMILL_PARTITIONS", "4")
    for key in ("1", "2", "3"):
        shop.submit(key)
    # When such are looked for; then each is found there, once
    for key in ("1", "2", "3"):
        [stage] = threadmill("trace", key, "--stage", "detail", "--json").json["stages"]
        assert (stage["partition"], stage["state"]) == (0, "waiting")


@pytest.mark.parametrize("key", ["", "a\x1fb", "x" * 600])
def test_what_is_no_id_is_refused(threadmill: Operator, key: str) -> None:
    assert threadmill("trace", key).status == 2


def test_an_unknown_source_or_stage_is_named(threadmill: Operator) -> None:
    for option in ("--source", "--stage"):
        ended = threadmill("trace", "1", option, "nowhere")
        assert ended.status == 2
        assert "nowhere" in ended.err
