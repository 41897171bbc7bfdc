"""Pages over HTTP and HTTPS: what Scrapy's download handler promises, ours keeps. Both are asked."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawl.conftest import StageUnderTest
from crawl.crawls import Crawls
from crawl.site import Canned, RawSite, page

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 100

ANSWERS = {
    "/page": page(b"hello", "Content-Type: text/plain"),
    "/odd": page(b"x", "X-Twice: one", "x-twice: two", "X-Latin: caf\xe9", status="404 Non trouv\xe9"),
    "/no-reason": page(b"x", status="200 "),
    "/own-status": page(b"x", status="999 Go away"),
    "/latin": page("café".encode("latin-1"), "Content-Type: text/html; charset=latin-1"),
    "/long-line": page(b"x", "X-Long: " + "y" * 12_000),
    "/many-lines": page(b"x", *(f"X-{n}: {n}" for n in range(100))),
    "/empty": page(b""),
    "/no-content": Canned(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "/not-modified": Canned(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
    "/hints": Canned(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + page(b"after").reply),
    "/old": Canned(b"HTTP/1.0 200 OK\r\n\r\nold", then="close"),
    "/chunks": Canned(CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    "/moved": page(b"", "Location: /page", status="302 Found"),
    "/cookie": page(b"x", "Set-Cookie: known=1; Path=/"),
    "/leave": Canned(page(b"x").reply, then="leave"),
    "/hang": Canned(b"", then="hang"),
    "/hang-in-body": Canned(CUT, then="hang"),
    "/endless": Canned(CHUNKED, then="go on"),
    "/big": page(b"x" * 50_000),
    "/cut": Canned(CUT, then="close"),
    "/cut-chunks": Canned(CHUNKED + b"5\r\nhello\r\n", then="close"),
    "/cut-by-reset": Canned(CUT, then="reset"),
    "/bad-chunk": Canned(CHUNKED + b"5\r\nhello\r\nzz\r\n", then="close"),
    "/closed": Canned(b"", then="close"),
    "/reset": Canned(b"", then="reset"),
    "/garbage": Canned(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", then="close"),
}


@pytest.fixture(scope="module")
def raw() -> Iterator[RawSite]:
    with RawSite(ANSWERS) as site:
        yield site


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
    stage.run(DOWNLOAD_TIMEOUT=0.2, environment={"THREADMILL_MAX_FAILURES": "2"})
    # Then it was asked for twice, and is parked
    assert stage.paths() == ["/page/1"]
    [letter] = stage.dead()
    assert letter.reason == "unreachable"
    assert letter.error.startswith("DownloadTimeoutError: Getting ")
    assert stage.site.hits["/hang/1"] == 2


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


# TLS -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server's, with a certificate that nobody signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_nobody_vouches_for(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        # When certificates are looked at; then the page is not fetched
        looked: dict[str, Any] = {"settings": {"DOWNLOAD_VERIFY_CERTIFICATES": True}}
        assert crawl.error(f"{site.url}/page", **looked) == "DownloadFailedError"
        assert not site.heads
        # When they are not; then it is, and the certificate is shown
        seen = crawl.page(f"{site.url}/page", settings={"DOWNLOAD_VERIFY_CERTIFICATES": False})
        assert (seen["body"], seen["certificate"], seen["ip"]) == ("hello", True, "127.0.0.1")


def test_a_stage_looks_at_certificates_unless_told_otherwise(stage: StageUnderTest, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        stage.site.url = site.url
        stage.submit("page")
        stage.run(environment={"THREADMILL_MAX_FAILURES": "1"}, ROBOTSTXT_OBEY=False)
        [letter] = stage.dead()
        assert "CERTIFICATE_VERIFY_FAILED" in letter.error
        assert not site.heads


def test_tls_versions_are_kept_to(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        settings = {"DOWNLOAD_VERIFY_CERTIFICATES": False, "DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"}
        assert crawl.page(f"{site.url}/page", settings=settings)["status"] == 200
        tls.minimum_version = ssl.TLSVersion.TLSv1_3
        assert crawl.error(f"{site.url}/page", settings=settings) == "DownloadFailedError"
        tls.minimum_version = ssl.TLSVersion.TLSv1_2


# Proxies -------------------------------------------------------------------------------------------------------------

SECRET = base64.b64encode(b"me:secret").decode()


def test_by_a_proxy(crawl: Crawls) -> None:
    with RawSite({"http://site.invalid/page": page(b"by proxy")}) as proxy:
        # When a page is asked for by a proxy, with credentials
        meta = {"proxy": proxy.url.replace("//", "//me:secret@")}
        seen = crawl.page({"url": "http://site.invalid/page", "meta": meta})
        # Then the proxy is asked for it, and told who asks
        assert seen["body"] == "by proxy"
        assert f"proxy-authorization: basic {SECRET}".lower() in proxy.said("http://site.invalid/page").lower()
        assert "\r\nhost: site.invalid\r\n" in proxy.said("http://site.invalid/page").lower()


def test_through_a_proxy_s_tunnel(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site, RawSite() as proxy:
        meta = {"proxy": proxy.url.replace("//", "//me:secret@")}
        settings = {"DOWNLOAD_VERIFY_CERTIFICATES": False}
        seen = crawl.page({"url": f"{site.url}/page", "meta": meta}, settings=settings)
        # Then the proxy is told who asks, and the site is not
        assert seen["body"] == "hello"
        [connect] = proxy.heads
        assert connect.startswith(f"CONNECT 127.0.0.1:{site.port} ".encode())
        assert f"proxy-authorization: basic {SECRET}".lower() in connect.decode().lower()
        assert "proxy-authorization" not in site.said("/page").lower()


def test_what_is_for_a_proxy_does_not_go_to_the_site(crawl: Crawls, raw: RawSite) -> None:
    headers = {"Proxy-Authorization": f"Basic {SECRET}"}
    assert "proxy-authorization" not in sent(crawl, {"url": f"{raw.url}/show", "headers": headers})["head"].lower()


def test_a_proxy_that_refuses_the_tunnel(crawl: Crawls) -> None:
    with RawSite() as site:  # answers no CONNECT for a host that is not there
        error = crawl.error({"url": "https://127.0.0.1:1/", "meta": {"proxy": site.url}})
        assert error in {"TunnelError", "DownloadFailedError"}


def test_a_proxy_that_is_not_there(crawl: Crawls, raw: RawSite) -> None:
    meta = {"proxy": "http://127.0.0.1:1"}
    assert crawl.error({"url": f"{raw.url}/page", "meta": meta}) == "DownloadConnectionRefusedError"
