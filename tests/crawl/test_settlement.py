"""However a page ends, it is settled once: done, tried again, or parked; and its effects come with its commit."""

from __future__ import annotations

import signal
import time

import pytest

from crawl.conftest import StageUnderTest
from crawl.site import Site
from crawl.spiders import LANE, STAGE
from threadmill.model.task import Task
from threadmill.store.calls import run
from waiting import wait_for

PIPELINE = {"ITEM_PIPELINES": {"crawl.spiders.Pipeline": 300}}


@pytest.mark.parametrize("settings", [{}, PIPELINE], ids=["straight to the commit", "through item pipelines"])
def test_items_are_the_same_on_both_paths(stage: StageUnderTest, settings: dict[str, object]) -> None:
    # Given thirty pages
    stage.submit(*(f"page/{n}" for n in range(30)))
    # When they are collected
    stage.run(**settings)
    # Then each gave its item once, and Scrapy's own counter agrees
    assert stage.paths() == sorted(f"/page/{n}" for n in range(30))
    assert stage.stat("item_scraped_count") == 30
    assert stage.books.done == stage.books.accepted == 30


def test_a_dropped_item_is_no_failure_and_a_failing_pipeline_is(stage: StageUnderTest) -> None:
    # Given a page whose item is dropped, one whose item makes the pipeline fail, and a good one
    stage.submit("page/drop", "page/fail", "page/good")
    # When they are collected by a worker that gives up after two failures
    stage.run(environment={"THREADMILL_MAX_FAILURES": "2"}, **PIPELINE)
    # Then the dropped one is done without an item, the failing one is parked rather than stored without it
    assert stage.paths() == ["/page/good"]
    assert stage.books.done == 2
    [letter] = stage.dead()
    assert (letter.reason, stage.site.hits["/page/fail"]) == ("callback", 2)
    assert "the pipeline has a bug" in letter.error


def test_a_callback_that_raises_commits_nothing_of_its_page(stage: StageUnderTest) -> None:
    # Given a callback that yields an item and then raises
    stage.submit("page/1")
    stage.run("raise", environment={"THREADMILL_MAX_FAILURES": "1"})
    # Then the item is not there, and the page is parked with the error after its retries
    assert stage.items() == []
    [letter] = stage.dead()
    assert letter.error == "ValueError: the callback has a bug"
    assert stage.books.balanced


def test_children_do_not_inherit_the_lease_however_their_meta_came_about(stage: StageUnderTest) -> None:
    # Given a callback that hands its meta on, and yields one page twice with its query arguments reordered
    stage.submit("page/root")
    stage.run("copy-meta")
    # Then every child is a page of its own, once
    assert stage.paths() == ["/page/child-1", "/page/child-2?b=2&a=1", "/page/child-3", "/page/root"]
    assert stage.items()[2]["extra"] == {"note": "kept"}
    assert stage.books.done == 4
    assert stage.books.filtered == 1


def test_what_is_gone_is_an_outcome(stage: StageUnderTest) -> None:
    # Given pages that were deleted
    stage.submit("404/x", "410/y")
    stage.run()
    # Then they are done, counted as gone, and were asked for once
    assert stage.books.done == stage.stat("gone") == 2
    assert stage.site.hits["/404/x"] == 1


def test_a_failed_page_is_tried_again_and_holds_no_lease_while_it_waits(stage: StageUnderTest) -> None:
    # Given a page that fails once
    stage.submit("flaky/1")
    stage.run()
    # Then it was retried and is stored once
    assert stage.paths() == ["/flaky/1"]
    assert stage.stat("retried") == 1


def test_a_429_pauses_the_site_and_is_not_the_page_s_failure(stage: StageUnderTest) -> None:
    # Given a page that is told to wait once, and a worker that allows not a single failure
    stage.submit("busy/1")
    process = stage.start(environment={"THREADMILL_MAX_FAILURES": "1"})
    wait_for(lambda: stage.books.delayed == 1, what="the page to be delayed")
    paused_until = int(stage.client.hget("{site.0}:site", "paused_until") or 0)
    # When another task comes while the site is paused
    stage.submit("page/after")
    process.wait(60)
    # Then both are stored, and the second was not asked for before the pause was over
    assert stage.paths() == ["/busy/1", "/page/after"]
    entries = stage.client.xrange("{site.0}:items")
    assert all(int(entry_id.split(b"-")[0]) >= paused_until for entry_id, _ in entries)


def test_a_redirect_keeps_its_lease(stage: StageUnderTest) -> None:
    stage.submit("moved/1")
    stage.run()
    assert stage.paths() == ["/page/moved"]
    assert stage.books.done == stage.books.accepted == 1


def test_a_redirect_to_another_host_is_not_followed(stage: StageUnderTest) -> None:
    # Given a page that redirects to another server, as a site does that shows a login or a challenge for an hour
    with Site() as other:
        stage.site.elsewhere = other.url
        stage.submit("away/1", "page/1")
        stage.run(environment={"THREADMILL_MAX_FAILURES": "2"})
        # Then that server is never asked, the page was tried again and is parked, and its neighbour is stored
        assert not other.hits
    assert stage.paths() == ["/page/1"]
    assert [letter.reason for letter in stage.dead()] == ["off-host"]
    assert stage.site.hits["/away/1"] == 2
    assert stage.books.balanced


@pytest.mark.parametrize("settings", [{}, PIPELINE], ids=["straight to the commit", "through item pipelines"])
@pytest.mark.parametrize("does", ["errback", "async-errback"])
def test_the_spider_s_own_errback_counts_as_handling(
    stage: StageUnderTest, does: str, settings: dict[str, object]
) -> None:
    stage.submit("500/x")
    stage.run(does, **settings)
    assert stage.items() == [{"path": "errback", "extra": {"error": 500}}]
    assert (stage.books.done, stage.books.leased) == (1, 0)
    assert stage.stat("retried") == 0


def test_a_pipeline_that_closes_the_spider_gives_its_page_back(stage: StageUnderTest) -> None:
    # Given a pipeline that has had enough at one page
    stage.submit("page/enough")
    output = stage.run(**PIPELINE)
    # Then the spider is closed, and the page waits for the next worker; it was not downloaded for ever
    assert "Closing spider (enough)" in output
    assert stage.site.hits["/page/enough"] <= 2
    assert (stage.books.requests, stage.books.leased, stage.books.done) == (1, 0, 0)


def test_a_worker_leaves_the_backlog_in_the_stream(stage: StageUnderTest) -> None:
    # Given a worker that waits for tasks, and a site that does not answer
    stage.start(environment={"THREADMILL_IDLE_CLOSE_MS": "0"})
    wait_for(lambda: stage.books.workers == 1, what="the worker")
    # When a thousand tasks come, a few at a time
    for start in range(0, 1000, 50):
        stage.submit(*(f"hang/{n}" for n in range(start, start + 50)))
    wait_for(lambda: stage.books.leased >= 16, what="a full worker")
    # Then it takes what it has room for and a little more; the rest stays where it costs least
    wait_for(lambda: stage.site.hits["/hang/0"] and stage.books.tasks > 800, what="a quiet worker")
    assert stage.books.requests < 200


def test_a_request_that_cannot_be_written_down_parks_its_page(stage: StageUnderTest) -> None:
    # Given a callback that yields a request with a lambda as its callback
    stage.submit("page/1")
    stage.run("lambda")
    # Then the page is parked with a sentence that says so, and is not tried in vain
    [letter] = stage.dead()
    assert letter.reason == "unserializable"
    assert "not a method of the spider" in letter.error
    assert stage.site.hits["/page/1"] == 1


def test_start_requests_of_two_workers_are_crawled_once(stage: StageUnderTest) -> None:
    # Given two workers of a plain spider with the same start requests
    environment = {"THREADMILL_DUPEFILTER": "exact"}
    workers = [stage.start(starting=True, environment=environment) for _ in range(2)]
    for worker in workers:
        output, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0, output
    # Then each page was fetched once
    assert stage.paths() == sorted(f"/page/{n}" for n in range(20))
    assert stage.books.filtered == 20


def test_sigterm_gives_back_what_is_not_finished(stage: StageUnderTest) -> None:
    # Given a worker in the middle of pages that do not answer, with more behind them
    stage.submit(*(f"hang/{n}" for n in range(40)))
    process = stage.start(
        CONCURRENT_REQUESTS_PER_DOMAIN=16,
        environment={"THREADMILL_GRACE_MS": "500", "THREADMILL_LEASE_TTL_MS": "60000"},
    )
    wait_for(lambda: sum(stage.site.hits.values()) >= 16, what="pages under way")
    # When it is told to stop
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    # Then it ends in good order, and all pages wait for the next worker, none counted as a crash
    assert process.returncode == 0, output
    books = stage.books
    assert (books.leased, books.done, books.workers) == (0, 0, 0)
    assert books.tasks + books.requests == 40
    # And the next worker collects them
    stage.site.release.set()
    stage.run()
    assert stage.books.done == 40
    assert stage.stat("reclaimed") == 0


def test_a_crawl_is_resumed_or_flushed_on_start(stage: StageUnderTest) -> None:
    # Given work that nobody has begun
    stage.submit("page/1", "page/2")
    # When a worker starts; then it says that it resumes
    assert "Resuming crawl (2 requests scheduled)" in stage.run()
    # And when one is told to flush first, it finds nothing to do
    stage.submit("page/3")
    assert "Resuming" not in stage.run(SCHEDULER_FLUSH_ON_START=True)
    assert stage.paths() == ["/page/1", "/page/2"]
    assert stage.books.accepted == 0


def test_a_worker_with_its_hands_full_is_not_idle(stage: StageUnderTest) -> None:
    # Given a worker that has all it can hold, of a site that takes longer than workers stay without work
    stage.submit(*[f"hang/{n}" for n in range(8)])
    process = stage.start(CONCURRENT_REQUESTS=1)
    wait_for(lambda: any(path.startswith("/hang/") for path in stage.site.hits), what="a page to be under way")
    time.sleep(2.5)  # the site takes its time
    # When the site answers; then it does not close before all is done
    stage.site.release.set()
    assert process.wait(30) == 0
    assert (stage.books.done, stage.books.requests) == (8, 0)


def test_express_work_does_not_wait_for_room(stage: StageUnderTest) -> None:
    # Given a worker with one page under way that hangs, its buffer full, and more behind it
    stage.submit(*(f"hang/{n}" for n in range(30)))
    stage.start(CONCURRENT_REQUESTS=2)
    wait_for(lambda: stage.site.hits["/hang/0"] and stage.books.leased >= 6, what="a full worker")
    # When an operator asks for a page
    run(stage.client, stage.store.submit([Task(STAGE.name, LANE.source, "page/now")], token="x", express=True))
    # Then it is leased at once, and it is the first to be fetched when a place is free
    wait_for(lambda: stage.books.leased >= 7, seconds=2, what="the express page")
    assert sum(stage.site.hits.values()) - stage.site.hits["/robots.txt"] == 2
    stage.site.release.set()
    wait_for(lambda: "/page/now" in stage.paths(), seconds=2, what="the express page's item")
    assert list(stage.site.hits)[:4] == ["/robots.txt", "/hang/0", "/hang/1", "/page/now"]


def test_the_backlog_stays_in_the_stream(stage: StageUnderTest) -> None:
    # Given many tasks whose pages lead to three more each
    stage.submit(*(f"page/{n}" for n in range(3000)))
    # When they are collected
    process = stage.start("copy-meta")
    queued = []
    while process.poll() is None:
        books = stage.books
        queued += [books.requests] if books.tasks else []
        time.sleep(0.01)
    # Then the request queue never held more than some times the worker's fill; the stream held the rest
    assert stage.books.done == 12_000
    assert 0 < max(queued) < 2400


def test_not_even_robots_txt_leads_elsewhere(stage: StageUnderTest) -> None:
    # Given a site whose robots.txt redirects to another server
    with Site() as other:
        stage.site.elsewhere, stage.site.robots_elsewhere = other.url, True
        stage.submit("page/1")
        stage.run()
        # Then that server is never asked, and the page is collected
        assert not other.hits
    assert stage.paths() == ["/page/1"]


@pytest.mark.parametrize("settings", [{}, PIPELINE], ids=["straight to the commit", "through item pipelines"])
def test_an_item_that_is_no_json_fails_its_page(stage: StageUnderTest, settings: dict[str, object]) -> None:
    stage.submit("page/1")
    stage.run("no-json", environment={"THREADMILL_MAX_FAILURES": "1"}, **settings)
    [letter] = stage.dead()
    assert "not JSON serializable" in letter.error
    assert stage.items() == []
    assert stage.books.leased == 0


def test_a_subtask_for_a_stage_that_is_not_handed_down_to_parks_its_page(stage: StageUnderTest) -> None:
    stage.submit("page/1", "page/2")
    stage.run("wrong-stage")
    assert [letter.reason for letter in stage.dead()] == ["wrong-stage", "wrong-stage"]
    assert stage.books.leased == 0


def test_tasks_may_be_pushed_as_json_by_anybody(stage: StageUnderTest) -> None:
    # Given a task as another program would push it
    stage.client.xadd(stage.store.keys.tasks, {"task": '{"key": "page/1"}'})
    stage.run()
    assert stage.paths() == ["/page/1"]


def test_a_429_that_does_not_say_how_long_pauses_the_site_too(stage: StageUnderTest) -> None:
    stage.submit("curt/1")
    stage.run(environment={"THREADMILL_MAX_FAILURES": "1"})
    assert stage.paths() == ["/curt/1"]
    assert stage.client.hget("{site.0}:site", "paused_until")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}, "remove that line"),
        ({"SCHEDULER_QUEUE_CLASS": "some.RandomQueue"}, "SCHEDULER_QUEUE_CLASS=some.RandomQueue is unknown"),
        ({"SCHEDULER_SERIALIZER": "scrapy_redis.picklecompat"}, "pickle is not supported"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    stage: StageUnderTest, settings: dict[str, str], sentence: str
) -> None:
    process = stage.start(**settings)
    output, _ = process.communicate(timeout=60)
    assert sentence in output
    assert stage.books.workers == 0
