"""A worker does what operators want while it works: it hears it with its lease calls, within 2 s."""

from __future__ import annotations

import subprocess

from crawl.conftest import StageUnderTest
from crawl.spiders import LANE, STAGE
from threadmill.store.control import CONCURRENCY, DRAINING, PAUSED, say
from waiting import wait_for

PROMISED_S = 2.0
"""Everything an operator says is taken up within this time."""
NO_ROBOTS = {"ROBOTSTXT_OBEY": False}
PATIENT = {"THREADMILL_IDLE_CLOSE_MS": "0"}


def order(stage: StageUnderTest, **fields: str | None) -> None:
    say(stage.client, [LANE], STAGE.name, fields)


def under_way(stage: StageUnderTest, kind: str = "/hang/") -> int:
    return sum(hits for path, hits in stage.site.hits.items() if path.startswith(kind))


def looks(stage: StageUnderTest) -> int:
    """How often workers have asked for leases: each call has a number."""
    numbers = stage.client.hgetall(stage.store.keys.reports)
    return sum(int(number) for name, number in numbers.items() if name.endswith(b":lease"))


def wait_for_looks(stage: StageUnderTest, more: int) -> None:
    """Wait until the worker asked so many times from now on: it has had the answer to all but the last."""
    before = looks(stage)
    wait_for(lambda: looks(stage) >= before + more, what="the worker to ask")


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output


def test_a_paused_worker_begins_no_page_and_gives_back_what_it_holds(stage: StageUnderTest) -> None:
    # Given a worker with two pages under way at a site that does not answer, and others in its buffer
    stage.submit(*(f"hang/{n}" for n in range(40)))
    process = stage.start(CONCURRENT_REQUESTS=2, environment=PATIENT, **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 2 and stage.books.leased > 2, what="a full buffer")
    # When the stage is paused; then it keeps only those two
    order(stage, **{PAUSED: "1"})
    wait_for(lambda: stage.books.leased == 2, PROMISED_S, what="the others to be given back")
    # And when the site answers, they are done, no other is asked for, and the backlog stays where it is
    backlog = stage.books.tasks
    stage.site.release.set()
    wait_for(lambda: stage.books.done == 2, what="the two")
    wait_for_looks(stage, 3)
    assert (under_way(stage), stage.books.leased, stage.books.tasks) == (2, 0, backlog)
    assert backlog > 20
    # When it goes on; then all is done, and nothing was asked for twice
    order(stage, **{PAUSED: None})
    wait_for(lambda: under_way(stage) > 2, PROMISED_S, what="it to go on")
    wait_for(lambda: stage.books.done == 40, what="the rest")
    end(process)
    assert set(stage.site.hits.values()) == {1}
    assert len(stage.paths()) == 40


def test_pages_that_wait_for_their_turn_at_the_site_are_given_back_too(stage: StageUnderTest) -> None:
    # Given a worker that asks the site for a page a minute, and pages that wait for that, with an errback of their own
    stage.submit(*(f"page/{n}" for n in range(10)))
    stage.start("errback", CONCURRENT_REQUESTS=4, DOWNLOAD_DELAY=60, environment=PATIENT, **NO_ROBOTS)
    wait_for(lambda: stage.books.done == 1 and stage.books.leased >= 4, what="the first page")
    # When the stage is paused
    order(stage, **{PAUSED: "1"})
    # Then all are given back as they came: no failure, nothing for the errback
    wait_for(lambda: stage.books.leased == 0, PROMISED_S, what="the pages to be given back")
    books = stage.books
    assert (books.done, books.delayed, books.dead, books.balanced) == (1, 0, 0, True)
    assert len(stage.items()) == 1


def test_a_draining_worker_admits_nothing_new_and_works_off_what_it_has(stage: StageUnderTest) -> None:
    # Given a worker with more tasks than it takes at once
    stage.submit(*(f"hang/{n}" for n in range(30)))
    process = stage.start(CONCURRENT_REQUESTS=2, environment=PATIENT, **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 2 and stage.books.leased > 2, what="a full buffer")
    left = stage.books.tasks
    assert left > 10
    # When the stage drains, and the site answers
    order(stage, **{DRAINING: "1"})
    wait_for_looks(stage, 2)
    stage.site.release.set()
    # Then what was admitted is done, and the rest waits in the stream; so does what an idle worker would have taken
    wait_for(lambda: stage.books.done == 30 - left, what="what was admitted")
    stage.submit("page/new")
    wait_for_looks(stage, 3)
    assert (stage.books.tasks, stage.books.open) == (left + 1, left + 1)
    # When it is over; then the rest is done
    order(stage, **{DRAINING: None})
    wait_for(lambda: stage.books.done == 31, what="the rest")
    end(process)


def test_an_idle_worker_that_drains_leaves_new_tasks_in_the_stream(stage: StageUnderTest) -> None:
    # Given a worker that waits for tasks
    process = stage.start(environment=PATIENT, **NO_ROBOTS)
    wait_for(lambda: looks(stage) >= 2, what="the worker to wait")
    # When the stage drains; then the worker takes no task, not even by the read that was under way
    order(stage, **{DRAINING: "1"})
    wait_for_looks(stage, 2)
    stage.submit("page/1")
    wait_for_looks(stage, 2)
    assert (stage.books.tasks, stage.books.requests) == (1, 0)
    # When it is over; then it does
    order(stage, **{DRAINING: None})
    wait_for(lambda: stage.books.done == 1, PROMISED_S, what="the task")
    end(process)


def test_the_concurrency_changes_while_the_worker_works(stage: StageUnderTest) -> None:
    # Given a worker that does one download at a time, at a site that does not answer
    stage.submit(*(f"hang/{n}" for n in range(8)))
    process = stage.start(CONCURRENT_REQUESTS=1, environment=PATIENT, **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 1 and stage.books.leased > 1, what="the first")
    # When it shall do four; then four are under way
    order(stage, **{CONCURRENCY: "4"})
    wait_for(lambda: under_way(stage) == 4, PROMISED_S, what="three more")
    # When it shall do two; then it does at most two at a time
    order(stage, **{CONCURRENCY: "2"})
    wait_for_looks(stage, 2)
    assert under_way(stage) == 4
    stage.site.release.set()
    wait_for(lambda: stage.books.done == 8, what="the first pages")
    stage.submit(*(f"slow/{n}" for n in range(20)))
    wait_for(lambda: stage.books.done == 28, what="the slow pages")
    assert stage.site.most_under_way == 2
    # And as its settings say when that is taken back
    order(stage, **{CONCURRENCY: None})
    wait_for_looks(stage, 2)
    stage.site.most_under_way = 0
    stage.submit(*(f"slow/{n}" for n in range(20, 28)))
    wait_for(lambda: stage.books.done == 36, what="the last pages")
    assert stage.site.most_under_way == 1
    end(process)
