"""A plain spider and a Redis that is far away, or behind a network that loses messages."""

from __future__ import annotations

import pytest

from chaos.proxy import Proxy
from crawl.conftest import StageUnderTest
from threadmill.ops.embedded import EmbeddedRedis


def test_leases_that_arrive_while_the_event_loop_is_blocked_are_renewed(
    stage: StageUnderTest, redis_server: EmbeddedRedis
) -> None:
    # Given a parser that blocks the event loop for two lease times on each page, and answers that come meanwhile
    paths = [f"page/{n}" for n in range(7)]
    stage.submit(*paths)
    with Proxy(redis_server.port) as proxy:
        proxy.latency_ms = 50
        # When its worker has done all pages
        environment = {"THREADMILL_LEASE_TTL_MS": "500"}
        stage.run("block", CONCURRENT_REQUESTS=1, environment={**environment, "THREADMILL_REDIS_URL": proxy.url})
    # Then nobody took them for a dead worker's
    assert (stage.stat("reclaimed"), stage.stat("fenced")) == (0, 0)
    assert stage.site.hits == {f"/{path}": 1 for path in paths} | {"/robots.txt": 1}


@pytest.mark.parametrize("part", ["request", "reply", "late"])
def test_start_requests_are_queued_once_whatever_is_lost(
    stage: StageUnderTest, redis_server: EmbeddedRedis, part: str
) -> None:
    # Given a network that loses the message with the spider's start requests, or its reply, or brings it twice
    with Proxy(redis_server.port) as proxy:
        if part == "late":
            proxy.hold_back("enqueue", 0.5)
        else:
            (proxy.drop_request if part == "request" else proxy.drop_reply)("enqueue")
        # When the spider has done its work
        stage.run(starting=True, environment={"THREADMILL_REDIS_URL": proxy.url})
        # Then each page was crawled once
        assert proxy.hit[f"{part} enqueue"] == 1
    assert sorted(stage.paths()) == sorted(f"/page/{n}" for n in range(20))
    assert (stage.books.accepted, stage.books.done) == (20, 20)


@pytest.mark.parametrize("verb", ["ensure_group", "report"])
def test_a_worker_whose_first_words_are_lost_says_them_again(
    stage: StageUnderTest, redis_server: EmbeddedRedis, verb: str
) -> None:
    # Given a network that loses what a worker says when it starts
    stage.submit("page/1")
    with Proxy(redis_server.port) as proxy:
        proxy.drop_reply(verb)
        # When it is started; then it works as ever
        stage.run(environment={"THREADMILL_REDIS_URL": proxy.url})
        assert proxy.hit[f"reply {verb}"] == 1
    assert stage.paths() == ["/page/1"]
