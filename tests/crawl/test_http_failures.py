"""Pages over HTTP that take too long, are too large, are cut short or are none: as in Scrapy. Both are asked."""

from __future__ import annotations

import signal
import socket
import time

import pytest

from crawl.conftest import StageUnderTest
from crawl.crawls import Crawls
from crawl.site import RawSite, page
from waiting import wait_for

# Limits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["hang", "hang-in-body"])
@pytest.mark.parametrize("by", ["setting", "meta"])
def test_a_page_that_takes_too_long(crawl: Crawls, raw: RawSite, path: str, by: str) -> None:
    settings, meta = ({"DOWNLOAD_TIMEOUT": 0.1}, {}) if by == "setting" else ({}, {"download_timeout": 0.1})
    assert crawl.error({"url": f"{raw.url}/{path}", "meta": meta}, settings=settings) == "DownloadTimeoutError"


@pytest.mark.parametrize("path", ["big", "endless"])
@pytest.mark.parametrize("by", ["setting", "meta"])
def test_a_page_that_is_too_large(crawl: Crawls, raw: RawSite, path: str, by: str) -> None:
    # Given a page that announces its size, and one that never ends
    settings, meta = ({"DOWNLOAD_MAXSIZE": 9000}, {}) if by == "setting" else ({}, {"download_maxsize": 9000})
    assert crawl.error({"url": f"{raw.url}/{path}", "meta": meta}, settings=settings) == "DownloadCancelledError"


def test_a_page_as_large_as_allowed(crawl: Crawls, raw: RawSite) -> None:
    assert len(crawl.page({"url": f"{raw.url}/big", "meta": {"download_maxsize": 50_000}})["body"]) == 50_000
    assert len(crawl.page(f"{raw.url}/big", settings={"DOWNLOAD_MAXSIZE": 0})["body"]) == 50_000


def test_a_page_that_hangs_is_tried_again_and_parked(stage: StageUnderTest) -> None:
    # Given a page that never answers; when a worker that gives up after two failures has done with it
    stage.submit("hang/1", "page/1")
    stage.run(DOWNLOAD_TIMEOUT=0.2, environment={"THREADMILL_MAX_FAILURES": "2", "THREADMILL_IDLE_CLOSE_MS": "300"})
    # Then it was asked for twice, and is parked
    assert stage.paths() == ["/page/1"]
    [letter] = stage.dead()
    assert letter.reason == "unreachable"
    assert letter.error.startswith("DownloadTimeoutError: Getting ")
    assert stage.site.hits["/hang/1"] == 2


def test_a_worker_that_stops_does_not_wait_for_pages_that_hang(stage: StageUnderTest) -> None:
    # Given a worker with pages under way that never answer
    stage.submit(*(f"hang/{n}" for n in range(4)))
    process = stage.start(environment={"THREADMILL_GRACE_MS": "300", "THREADMILL_LEASE_TTL_MS": "60000"})
    wait_for(lambda: sum(path.startswith("/hang/") for path in stage.site.hits) == 4, what="pages under way")
    # When it is told to stop
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    # Then it ends soon, in good order, with nothing left open behind it
    assert process.returncode == 0, output
    assert time.monotonic() - began < 5
    assert "Unclosed" not in output
    assert "Traceback" not in output


# What goes wrong -----------------------------------------------------------------------------------------------------

CUTS = ["cut", "cut-chunks", "cut-by-reset"]


@pytest.mark.parametrize("path", CUTS)
def test_a_body_that_was_cut_short_is_an_error(crawl: Crawls, raw: RawSite, path: str) -> None:
    assert crawl.error(f"{raw.url}/{path}") == "ResponseDataLossError"


@pytest.mark.parametrize("path", CUTS)
@pytest.mark.parametrize("by", ["setting", "meta"])
def test_unless_what_there_is_of_it_is_wanted(crawl: Crawls, raw: RawSite, path: str, by: str) -> None:
    setting, meta = ({"DOWNLOAD_FAIL_ON_DATALOSS": False}, {}) if by == "setting" else ({}, {})
    meta = {} if by == "setting" else {"download_fail_on_dataloss": False}
    seen = crawl.page({"url": f"{raw.url}/{path}", "meta": meta}, settings=setting)
    assert (seen["status"], seen["flags"]) == (200, ["dataloss"])
    assert seen["body"] == ("hello" if path == "cut-chunks" else "x" * 100)


@pytest.mark.parametrize("path", ["closed", "reset", "garbage", "bad-chunk"])
def test_what_is_no_answer(crawl: Crawls, raw: RawSite, path: str) -> None:
    wanted = {"bad-chunk": ("ResponseDataLossError", "DownloadFailedError")}
    assert crawl.error(f"{raw.url}/{path}") in wanted.get(path, ("DownloadFailedError",))


def test_a_header_line_without_a_colon_is_an_error_here(ours: Crawls) -> None:
    # Scrapy's own handler skips such a line; aiohttp's parser cannot be told to. It is no page that is cut, at least
    with RawSite({"/page": page(b"x", "no colon")}) as site:
        assert ours.error(f"{site.url}/page") == "DownloadFailedError"


def test_a_request_header_that_is_not_utf_8_is_an_error_here(ours: Crawls, raw: RawSite) -> None:
    # Scrapy's own handler sends any bytes; aiohttp sends text as UTF-8. Nothing else is sent in its place
    assert ours.error({"url": f"{raw.url}/show", "headers": {"X": "\xe9"}, "encoding": "latin-1"})


def test_nobody_there(crawl: Crawls) -> None:
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        assert crawl.error(f"http://127.0.0.1:{taken.getsockname()[1]}/") == "DownloadConnectionRefusedError"


def test_no_such_host(crawl: Crawls) -> None:
    assert crawl.error("http://no-such-host.invalid/") == "CannotResolveHostError"


def test_a_connection_the_site_has_left_meanwhile_is_no_failure(crawl: Crawls, raw: RawSite) -> None:
    # Given a site that closes each connection a while after its answer, and does not say so
    urls = [f"{raw.url}/leave?{n}" for n in range(6)]
    # When its pages are fetched one after the other, just about then
    report = crawl(*urls, settings={"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.1, "DOWNLOAD_DELAY_JITTER": 0})
    # Then all of them are there
    assert sorted(page["url"] for page in report["pages"]) == urls


def test_connections_are_used_again(crawl: Crawls) -> None:
    with RawSite() as site:
        crawl(*(f"{site.url}/{n}" for n in range(5)), settings={"CONCURRENT_REQUESTS": 1})
        assert (site.connections, len(site.heads)) == (1, 5)
