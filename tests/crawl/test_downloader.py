"""The downloader: limits, delays, middlewares and signals as Scrapy's. Both are asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawl.crawls import Crawls
from crawl.middlewares import middlewares
from crawl.site import RawSite, Site, page

THREE = {"DOWNLOADER_MIDDLEWARES": middlewares("Outer", "Acting", "Inner")}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def slow(site: Site, count: int) -> list[str]:
    return [f"{site.url}/slow/{n}" for n in range(count)]


def apart(site: Site) -> float:
    """The least time between two requests under /slow (s)."""
    return min(after - before for before, after in itertools.pairwise(site.times))


# How many at a time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"CONCURRENT_REQUESTS": 3, "CONCURRENT_REQUESTS_PER_DOMAIN": 50},
        {"CONCURRENT_REQUESTS": 50, "CONCURRENT_REQUESTS_PER_DOMAIN": 3},
        {"CONCURRENT_REQUESTS": 50, "DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 3}}},
        {"CONCURRENT_REQUESTS": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 3},
    ],
    ids=["in all", "per domain", "per slot", "per domain, no limit in all"],
)
def test_no_more_at_a_time_than_allowed(ours: Crawls, site: Site, settings: dict[str, Any]) -> None:
    # Given eighteen pages at once (ours only: Scrapy's own lets such a burst pass its limit per domain)
    report = ours(*slow(site, 18), settings=settings)
    # Then all came, never more than three at a time, and three where there was room for them
    assert len(report["pages"]) == 18
    assert site.most_under_way == 3


def test_slots_are_apart(ours: Crawls, site: Site) -> None:
    # Given pages in two slots, one request each at a time (ours only, again)
    requests = [{"url": url, "meta": {"download_slot": str(n % 2)}} for n, url in enumerate(slow(site, 8))]
    report = ours(*requests, settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    # Then two are under way together
    assert site.most_under_way == 2
    assert {page["slot"] for page in report["pages"]} == {"0", "1"}


def test_requests_of_a_slot_are_sent_in_order(ours: Crawls, site: Site) -> None:
    ours(*slow(site, 8), settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    assert [path for path in site.hits if path != "/robots.txt"] == [f"/slow/{n}" for n in range(8)]


# Delays --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"DOWNLOAD_DELAY": 0.1, "DOWNLOAD_DELAY_JITTER": 0},
        {"DOWNLOAD_DELAY": 0.2, "DOWNLOAD_DELAY_JITTER": 0.5},
        {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.1, "jitter": 0}}},
    ],
    ids=["delay", "jitter", "per slot"],
)
def test_requests_keep_their_distance(crawl: Crawls, site: Site, settings: dict[str, Any]) -> None:
    # Given a delay of 100 ms at least; when pages are asked for that take 50
    crawl(*slow(site, 4), settings=settings)
    # Then no two came closer than that, less what a busy machine is late
    assert len(site.times) == 4
    assert apart(site) >= 0.06


def test_a_delay_holds_up_its_own_slot_only(crawl: Crawls, site: Site) -> None:
    settings = {"DOWNLOAD_SLOTS": {"late": {"delay": 0.3, "jitter": 0}}}
    late = [{"url": f"{site.url}/slow/late/{n}", "meta": {"download_slot": "late"}} for n in range(2)]
    report = crawl(*late, *slow(site, 4), settings=settings)
    assert report["pages"][-1]["url"] == f"{site.url}/slow/late/1"


def test_autothrottle_finds_its_delay(crawl: Crawls, site: Site) -> None:
    # Given a site that takes 50 ms, to be asked for half a page at a time
    settings = {
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": 0.01,
        "AUTOTHROTTLE_TARGET_CONCURRENCY": 0.5,
        "DOWNLOAD_DELAY_JITTER": 0,
    }
    crawl(*slow(site, 8), settings=settings)
    # Then it is asked every 100 ms in the end
    assert site.times[-1] - site.times[-2] >= 0.07


# Middlewares ---------------------------------------------------------------------------------------------------------


def events(report: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    return [(who, what) for who, what, where in report["events"] if where == kind]


def test_middlewares_are_asked_in_order(crawl: Crawls, site: Site) -> None:
    report = crawl(f"{site.url}/page/1", settings=THREE)
    assert events(report, "page") == [
        *[(who, "request") for who in ("outer", "acting", "inner")],
        *[(who, "response") for who in ("inner", "acting", "outer")],
    ]


def test_middlewares_are_made_once_and_are_found(crawl: Crawls, site: Site) -> None:
    # Given a middleware that may open files or connect to signals when it is made
    report = crawl(f"{site.url}/page/1", settings=THREE)
    assert (report["made"], report["found"]) == (1, True)


def test_a_middleware_that_answers(crawl: Crawls, site: Site) -> None:
    # When one answers itself; then nobody behind it is asked, and all see the response
    report = crawl(f"{site.url}/respond/1", settings=THREE)
    assert report["pages"][0]["body"] == "made up"
    assert events(report, "respond") == [
        *[(who, "request") for who in ("outer", "acting")],
        *[(who, "response") for who in ("inner", "acting", "outer")],
    ]
    assert not site.hits


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("replace", [("outer", "request"), ("acting", "request")]),
        (
            "again",
            [
                *[("outer", "request"), ("acting", "request"), ("inner", "request")],
                *[("inner", "response"), ("acting", "response")],
            ],
        ),
    ],
)
def test_a_middleware_that_asks_for_another_page(
    crawl: Crawls, site: Site, kind: str, seen: list[tuple[str, str]]
) -> None:
    # When a request is replaced, on its way out or back; then the new one goes through all of them
    report = crawl(f"{site.url}/{kind}/1", settings=THREE)
    assert events(report, kind) == seen
    assert len(events(report, "page")) == 6
    assert [page["body"] for page in report["pages"]] == ["/page/1"]


def test_a_middleware_that_ignores_a_request(crawl: Crawls, site: Site) -> None:
    report = crawl(f"{site.url}/ignore/1", settings=THREE)
    assert [error["error"] for error in report["errors"]] == ["IgnoreRequest"]
    assert events(report, "ignore")[2:] == [(who, "exception IgnoreRequest") for who in ("inner", "acting", "outer")]
    assert not site.hits


def test_a_middleware_that_raises_at_a_response(crawl: Crawls, site: Site) -> None:
    # Then it goes to the errback; process_exception is for what comes from further in
    report = crawl(f"{site.url}/raise-response/1", settings=THREE)
    assert [error["error"] for error in report["errors"]] == ["IgnoreRequest"]
    assert not [what for _, what in events(report, "raise-response") if what.startswith("exception")]


def test_middlewares_that_recover_from_an_exception(crawl: Crawls, site: Site) -> None:
    # Given a host where nobody is; when a middleware makes up a page; then those behind it do not see the exception,
    # and all see the response
    report = crawl("http://127.0.0.1:1/dead/recover", settings=THREE)
    assert report["pages"][0]["body"] == "recovered"
    assert events(report, "dead")[3:] == [
        *[(who, "exception DownloadConnectionRefusedError") for who in ("inner", "acting")],
        *[(who, "response") for who in ("inner", "acting", "outer")],
    ]
    # And when it asks for another page instead, that one comes
    request = {"url": "http://127.0.0.1:1/dead/elsewhere", "meta": {"elsewhere": f"{site.url}/page/2"}}
    assert crawl.page(request, settings=THREE)["body"] == "/page/2"


@pytest.mark.parametrize("at", ["request", "response", "exception"])
def test_a_middleware_that_returns_something_else(crawl: Crawls, site: Site, at: str) -> None:
    url = "http://127.0.0.1:1/dead/wrong-exception" if at == "exception" else f"{site.url}/wrong-{at}/1"
    [error] = crawl(url, settings=THREE)["errors"]
    assert error["error"] in {"_InvalidOutput", "TypeError"}  # the one is the other; the first is private to Scrapy
    assert f"Acting.process_{at} must return" in error["said"]


@pytest.mark.parametrize(
    ("url", "body"), [("{site}/page/1", "/page/1, late"), ("{site}/respond/1", "in time, late"), ("dead", "recovered")]
)
def test_middlewares_that_are_coroutines(crawl: Crawls, site: Site, url: str, body: str) -> None:
    url = url.replace("dead", "http://127.0.0.1:1/dead/x").format(site=site.url)
    page = crawl.page(url, settings={"DOWNLOADER_MIDDLEWARES": middlewares("Outer", "Late", "Inner")})
    assert page["body"].startswith(body)


def test_middlewares_that_return_deferreds(crawl: Crawls, site: Site) -> None:
    page = crawl.page(f"{site.url}/page/1", settings={"DOWNLOADER_MIDDLEWARES": middlewares("Deferring")})
    assert page["body"] == "/page/1, deferred"


def test_middlewares_that_want_the_spider(crawl: Crawls, site: Site) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": middlewares("WantsSpider")}
    report = crawl(f"{site.url}/page/1", "http://127.0.0.1:1/dead/x", settings=settings)
    assert events(report, "page") == [("wants", "request crawl"), ("wants", "response crawl")]
    assert events(report, "dead") == [("wants", "request crawl"), ("wants", "exception crawl")]


# What Scrapy's own parts want of it ----------------------------------------------------------------------------------


def test_signals_come_in_order(crawl: Crawls, site: Site) -> None:
    names = ["request_reached_downloader", "response_downloaded", "request_left_downloader", "response_received"]
    report = crawl(f"{site.url}/page/1", hear=names)
    assert [name for name, _, _ in report["events"]] == names
    # And when there is no response, the request has left all the same
    report = crawl("http://127.0.0.1:1/dead/x", hear=names)
    assert [name for name, _, _ in report["events"]] == ["request_reached_downloader", "request_left_downloader"]


def test_requests_wait_for_nobody_who_has_left(crawl: Crawls, site: Site) -> None:
    # Given one place; when pages fail in it; then those behind them come
    report = crawl("http://127.0.0.1:1/dead/x", *slow(site, 3), settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 1, **THREE})
    assert (len(report["pages"]), len(report["errors"])) == (3, 1)


def test_a_callback_may_download(crawl: Crawls, site: Site) -> None:
    report = crawl(f"{site.url}/page/1", does="fetch more")
    assert [page["body"] for page in report["pages"]] == ["/page/1", "/page/1/more"]


def test_robots_txt_is_obeyed(crawl: Crawls, site: Site) -> None:
    # Given a site without robots.txt, and one that says no; both are asked for it once
    settings = {"ROBOTSTXT_OBEY": True}
    assert len(crawl(f"{site.url}/page/1", f"{site.url}/page/2", settings=settings)["pages"]) == 2
    assert site.hits["/robots.txt"] == 1
    rules = page(b"User-agent: *\nDisallow: /private", "Content-Type: text/plain")
    with RawSite({"/robots.txt": rules}) as strict:
        report = crawl(f"{strict.url}/private/1", f"{strict.url}/public/1", settings=settings)
        assert [error["error"] for error in report["errors"]] == ["IgnoreRequest"]
        assert [page["url"] for page in report["pages"]] == [f"{strict.url}/public/1"]
        assert sum(b"/robots.txt" in head for head in strict.heads) == 1


def test_the_http_cache_works(crawl: Crawls, site: Site, tmp_path: Path) -> None:
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    first, second = (crawl.page(f"{site.url}/page/1", settings=settings) for _ in range(2))
    assert (first["body"], first["flags"]) == ("/page/1", [])
    assert (second["body"], second["flags"]) == ("/page/1", ["cached"])
    assert site.hits["/page/1"] == 1


def test_downloads_are_counted(crawl: Crawls, site: Site) -> None:
    stats = crawl(*slow(site, 3), "http://127.0.0.1:1/dead/x")["stats"]
    assert (stats["downloader/request_count"], stats["downloader/response_count"]) == (4, 3)
    assert stats["downloader/exception_count"] == 1
    assert stats["response_received_count"] == 3
