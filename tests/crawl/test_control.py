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
LASTING = {"THREADMILL_IDLE_CLOSE_MS": "0"}


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


def most_at_a_time(stage: StageUnderTest, pages: int) -> int:
    """How many of these slow pages the worker downloads at a time, at most."""
    done, stage.site.most_under_way = stage.books.done, 0
    stage.submit(*(f"slow/{done + n}" for n in range(pages)))
    wait_for(lambda: stage.books.done == done + pages, what="the slow pages")
    return stage.site.most_under_way


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output


def test_a_paused_worker_begins_no_page_and_gives_back_what_it_holds(stage: StageUnderTest) -> None:
    # Given a worker with two pages under way at a site that does not answer, and others in its buffer
    stage.submit(*(f"hang/{n}" for n in range(200)))
    process = stage.start(CONCURRENT_REQUESTS=2, environment=LASTING, **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 2 and stage.books.leased > 2, what="a full buffer")
    # When the stage is paused; then it keeps only those two
    order(stage, **{PAUSED: "1"})
    wait_for(lambda: stage.books.leased == 2, PROMISED_S, what="the others to be given back")
    # And when the site answers, they are done, no other is asked for, and the backlog stays where it is
    backlog = stage.books.tasks
    stage.site.release.set()
    wait_for(lambda: stage.books.done == 2, what="the two")
    wait_for_looks(stage, 2)
    assert (under_way(stage), stage.books.leased, stage.books.tasks) == (2, 0, backlog)
    assert backlog > 20
    # When it goes on; then all is done, and nothing was asked for twice
    order(stage, **{PAUSED: None})
    wait_for(lambda: under_way(stage) > 2, PROMISED_S, what="it to go on")
    wait_for(lambda: stage.books.done == 200, what="the rest")
    end(process)
    assert set(stage.site.hits.values()) == {1}
    assert len(stage.paths()) == 200


def test_pages_that_wait_for_their_turn_at_the_site_are_given_back_too(stage: StageUnderTest) -> None:
    # Given a worker that asks the site for a page a minute, and pages that wait for that, with an errback of their own
    stage.submit(*(f"page/{n}" for n in range(10)))
    stage.start("errback", CONCURRENT_REQUESTS=4, DOWNLOAD_DELAY=60, environment=LASTING, **NO_ROBOTS)
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
    stage.submit(*(f"hang/{n}" for n in range(200)))
    process = stage.start(CONCURRENT_REQUESTS=2, environment=LASTING, module="crawl.hasty", **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 2 and stage.books.leased > 2, what="a full buffer")
    left = stage.books.tasks
    assert left > 10
    # When the stage drains, and the site answers
    order(stage, **{DRAINING: "1"})
    wait_for_looks(stage, 2)
    stage.site.release.set()
    # Then what was admitted is done, and the rest waits in the stream; so does what an idle worker would have taken
    wait_for(lambda: stage.books.done == 200 - left, what="what was admitted")
    stage.submit("page/new")
    wait_for_looks(stage, 2)
    assert (stage.books.tasks, stage.books.open) == (left + 1, left + 1)
    # When it is over; then the rest is done
    order(stage, **{DRAINING: None})
    wait_for(lambda: stage.books.done == 201, what="the rest")
    end(process)


def test_an_idle_worker_that_drains_leaves_new_tasks_in_the_stream(stage: StageUnderTest) -> None:
    # Given a worker that waits for tasks
    process = stage.start(environment=LASTING, module="crawl.hasty", **NO_ROBOTS)
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
    # Given a worker that does three downloads at a time, at a site that does not answer
    stage.submit(*(f"hang/{n}" for n in range(8)))
    process = stage.start(CONCURRENT_REQUESTS=3, environment=LASTING, module="crawl.hasty", **NO_ROBOTS)
    wait_for(lambda: under_way(stage) == 3 and stage.books.leased > 3, what="the first")
    # When it shall do five; then five are under way
    order(stage, **{CONCURRENCY: "5"})
    wait_for(lambda: under_way(stage) == 5, PROMISED_S, what="two more")
    # When it shall do two; then it begins no more until there are less, and does two at a time
    order(stage, **{CONCURRENCY: "2"})
    wait_for_looks(stage, 2)
    assert under_way(stage) == 5
    stage.site.release.set()
    wait_for(lambda: stage.books.done == 8, what="the first pages")
    assert most_at_a_time(stage, 20) == 2
    # And as its settings say when that is taken back
    order(stage, **{CONCURRENCY: None})
    wait_for_looks(stage, 2)
    assert most_at_a_time(stage, 20) == 3
    end(process)
