"""Outcomes: what becomes of a page that ended in an error. Whatever a site may mend is tried again."""

from __future__ import annotations

import gzip

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError, IgnoreRequest, ResponseDataLossError
from scrapy.http import Response
from scrapy.spiders import Spider
from scrapy.utils.test import get_crawler

from threadmill.crawl.hosts import OffHostError
from threadmill.crawl.outcomes import GiveUp, Outcome, Retry, RetryPolicy, Settled
from threadmill.model.errors import ExtractionError, TaskError

POLICY = RetryPolicy(base_ms=1000, max_ms=8000)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DownloadCancelledError("larger than download max size"), "too-large"),
        (DownloadTimeoutError("took longer than 30 seconds"), "unreachable"),
        (ResponseDataLossError(), "unreachable"),
        (ConnectionResetError("reset"), "unreachable"),
        (ExtractionError("is not JSON"), "unreadable"),
        (OffHostError("http://10.0.0.1/ is not on the source's hosts"), "off-host"),
        (IgnoreRequest("max redirections reached"), "redirects"),
        (ZeroDivisionError(), "callback"),
    ],
)
def test_what_may_pass_is_a_counted_retry_that_waits_longer_each_time(error: Exception, reason: str) -> None:
    for failures, most_ms in ((0, 1500), (2, 6000), (30, 12_000)):
        outcome = POLICY.outcome_of(error, failures)
        assert isinstance(outcome, Retry)
        assert (outcome.reason, outcome.counts, outcome.pause_ms) == (reason, True, 0)
        assert most_ms / 3 <= outcome.wait_ms <= most_ms


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_response_that_is_too_large_once_unpacked_is_a_counted_retry_and_not_ignored(encoding: str) -> None:
    # Given what Scrapy's own middleware raises for a bomb
    crawler: Crawler = get_crawler(Spider, {"DOWNLOAD_MAXSIZE": 1_000_000})
    body = gzip.compress(b" " * 2_000_000)
    bomb = Response(
        "http://a/", headers={"Content-Encoding": encoding}, body=body if encoding == "gzip" else gzip.compress(body)
    )
    with pytest.raises(IgnoreRequest) as raised:
        HttpCompressionMiddleware.from_crawler(crawler).process_response(Request("http://a/"), bomb)
    # Then the page is not called done
    outcome = POLICY.outcome_of(raised.value, 0)
    assert isinstance(outcome, Retry)
    assert (outcome.reason, outcome.counts) == ("too-large", True)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (IgnoreRequest("a project's own middleware means it"), Settled("ignored")),
        (IgnoreRequest("Forbidden by robots.txt"), GiveUp("robots", "IgnoreRequest: Forbidden by robots.txt")),
        (TaskError("refused-key", "no"), GiveUp("refused-key", "TaskError: no")),
    ],
)
def test_what_is_meant_is_not_tried_again(error: Exception, outcome: Outcome) -> None:
    assert POLICY.outcome_of(error, 0) == outcome
