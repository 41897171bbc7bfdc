"""Pages over HTTP: what Scrapy's download handler shows, sends and tells, ours does. Both are asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crawl.crawls import Crawls
from crawl.site import Canned, RawSite

# What comes back -----------------------------------------------------------------------------------------------------


def test_a_page_is_shown_whole(crawl: Crawls, raw: RawSite) -> None:
    # Given a page; when it is fetched
    seen = crawl.page(f"{raw.url}/page")
    # Then its parts are there, and where it came from
    assert (seen["url"], seen["status"], seen["body"], seen["kind"]) == (
        f"{raw.url}/page",
        200,
        "hello",
        "TextResponse",
    )
    assert (seen["ip"], seen["protocol"], seen["certificate"]) == ("127.0.0.1", "HTTP/1.1", False)
    assert seen["headers"]["Content-Length"] == ["5"]
    assert seen["flags"] == []
    assert 0 < seen["latency"] < 5
    assert seen["slot"] == "127.0.0.1"


def test_headers_that_come_twice_or_are_not_ascii_are_kept(crawl: Crawls, raw: RawSite) -> None:
    seen = crawl.page({"url": f"{raw.url}/odd", "meta": {"handle_httpstatus_all": True}})
    assert seen["status"] == 404
    assert seen["headers"]["X-Twice"] == ["one", "two"]
    assert seen["headers"]["X-Latin"] == ["caf\xe9"]


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("no-reason", 200, "x"),
        ("own-status", 999, "x"),
        ("long-line", 200, "x"),
        ("many-lines", 200, "x"),
        ("empty", 200, ""),
        ("no-content", 204, ""),
        ("not-modified", 304, ""),
        ("hints", 200, "after"),
        ("old", 200, "old"),
        ("chunks", 200, "hello world"),
    ],
)
def test_unusual_answers_are_understood(crawl: Crawls, raw: RawSite, path: str, status: int, body: str) -> None:
    seen = crawl.page({"url": f"{raw.url}/{path}", "meta": {"handle_httpstatus_all": True}})
    assert (seen["status"], seen["body"]) == (status, body)


def test_the_charset_is_the_page_s(crawl: Crawls, raw: RawSite) -> None:
    assert crawl.page(f"{raw.url}/latin")["text"] == "caf\xe9"


def test_a_fragment_is_not_sent_and_not_shown(crawl: Crawls, raw: RawSite) -> None:
    assert crawl.page(f"{raw.url}/page#part")["url"] == f"{raw.url}/page"


def test_a_page_without_an_announced_end_says_so(crawl: Crawls, raw: RawSite) -> None:
    # Given a body that ends where the connection ends: nothing tells whether it is whole
    assert crawl.page(f"{raw.url}/old")["flags"] == ["partial"]


# What is sent --------------------------------------------------------------------------------------------------------


def sent(crawl: Crawls, request: dict[str, Any] | str, **order: Any) -> dict[str, str]:
    """A request as the site saw it: its head and body."""
    return dict(json.loads(crawl.page(request, **order)["body"]))


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_body_is_sent(crawl: Crawls, raw: RawSite, method: str) -> None:
    shown = sent(crawl, {"url": f"{raw.url}/show", "method": method, "body": "a=1&b=caf\xe9"})
    assert shown["head"].startswith(f"{method} /show HTTP/1.1\r\n")
    assert shown["body"].encode("latin-1").decode() == "a=1&b=caf\xe9"
    assert "content-length: 11\r\n" in shown["head"].lower()
    assert "content-length: 0\r\n" in sent(crawl, {"url": f"{raw.url}/show", "method": method})["head"].lower()


def test_head_has_no_body_however_long_it_says_it_is(crawl: Crawls) -> None:
    answer = Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n")
    with RawSite({"/page": answer}) as site:
        # When only the head is asked for, of a page above the limit; then that is what comes
        seen = crawl.page({"url": f"{site.url}/page", "method": "HEAD"}, settings={"DOWNLOAD_MAXSIZE": 1000})
        assert (seen["status"], seen["body"], seen["flags"]) == (200, "", [])
        assert site.said("/page").startswith("HEAD /page ")


@pytest.mark.parametrize(
    "path",
    [
        "/a/../b//c/.",
        "/%7Eme/%2f%2F/%e9%C3%A9",
        "/x?q=a+b%20c&&=;&z=%26",
        "/p;v=1,2/(x)!$'*",
        "/x?u=http://a/?b=c",
    ],
)
def test_urls_are_sent_byte_for_byte(crawl: Crawls, path: str) -> None:
    with RawSite() as site:
        crawl(f"{site.url}{path}#fragment")
        [head] = site.heads
    assert head.split(b" ")[1].decode() == path


def test_headers_are_what_the_request_says_and_no_more(crawl: Crawls, raw: RawSite) -> None:
    # Given a request with headers of its own, some twice, one not ASCII
    own = {"User-Agent": "me", "Accept": "a/b", "X-Twice": ["one", "two"], "X-Name": "caf\xe9", "Host": "elsewhere"}
    settings = {"DEFAULT_REQUEST_HEADERS": {}, "COOKIES_ENABLED": False}
    settings["DOWNLOADER_MIDDLEWARES"] = {
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None
    }
    lines = sent(crawl, {"url": f"{raw.url}/show", "headers": own}, settings=settings)["head"].split("\r\n")[1:-2]
    # Then the site sees these, and nothing that the client thought of
    lower = sorted(line.partition(":")[0].lower() for line in lines)
    assert [name for name in lower if name != "connection"] == [
        *["accept", "host", "user-agent", "x-name", "x-twice", "x-twice"]
    ]
    assert "X-Name: caf\xe9".encode().decode("latin-1") in lines
    assert "Host: elsewhere" in lines


def test_redirects_are_left_to_the_middleware(crawl: Crawls, raw: RawSite) -> None:
    seen = crawl.page({"url": f"{raw.url}/moved", "meta": {"dont_redirect": True, "handle_httpstatus_all": True}})
    assert (seen["status"], seen["headers"]["Location"]) == (302, ["/page"])
    assert crawl.page(f"{raw.url}/moved")["body"] == "hello"


def test_cookies_are_left_to_the_middleware(crawl: Crawls, raw: RawSite) -> None:
    # Given a site that sets a cookie on its first page; when two pages are fetched, one after the other
    order: dict[str, Any] = {"settings": {"COOKIES_ENABLED": False, "CONCURRENT_REQUESTS": 1}}
    report = crawl(f"{raw.url}/cookie", f"{raw.url}/show", **order)
    # Then the second does not show it: the handler keeps none
    assert "cookie" not in json.loads(report["pages"][1]["body"])["head"].lower()
    order["settings"]["COOKIES_ENABLED"] = True
    report = crawl(f"{raw.url}/cookie", f"{raw.url}/show", **order)
    assert "cookie: known=1" in json.loads(report["pages"][1]["body"])["head"].lower()


def test_the_address_to_bind_to(crawl: Crawls, raw: RawSite) -> None:
    # 127.0.0.2 is an address of this machine as well; that it is taken shows in that the page comes
    assert crawl.page(f"{raw.url}/page", settings={"DOWNLOAD_BIND_ADDRESS": "127.0.0.2"})["status"] == 200
    # 192.0.2.1 (RFC 5737) is none
    assert crawl.error(f"{raw.url}/page", settings={"DOWNLOAD_BIND_ADDRESS": "192.0.2.1"})


# Signals -------------------------------------------------------------------------------------------------------------


def test_headers_and_bytes_are_told(crawl: Crawls, raw: RawSite) -> None:
    url = f"{raw.url}/big"
    report = crawl(url, hear=["headers_received", "bytes_received"])
    kinds = [name for name, _, _ in report["events"]]
    assert kinds[0] == "headers_received"
    assert set(kinds[1:]) == {"bytes_received"}
    assert {where for _, where, _ in report["events"]} == {url}
    assert sum(int(size) for name, _, size in report["events"] if name == "bytes_received") == 50_000


@pytest.mark.parametrize("at", ["headers_received", "bytes_received"])
def test_a_download_may_be_stopped(crawl: Crawls, raw: RawSite, at: str) -> None:
    # Given a listener that has seen enough, of a page far above the limit
    order: dict[str, Any] = {"hear": [at], "settings": {"DOWNLOAD_MAXSIZE": 0 if at == "bytes_received" else 1000}}
    # When it stops the download without calling it a failure; then there is a page, with what had come
    seen = crawl.page(f"{raw.url}/big", stop={"at": at, "fail": False}, **order)
    assert (seen["status"], seen["flags"]) == (200, ["download_stopped"])
    assert len(seen["body"]) < 50_000 or at == "bytes_received"
    # When it does call it a failure; then the errback has the page
    [error] = crawl(f"{raw.url}/big", stop={"at": at, "fail": True}, **order)["errors"]
    assert (error["error"], error["page"]["flags"]) == ("StopDownload", ["download_stopped"])
    assert error["page"]["headers"]["Content-Length"] == ["50000"]
