"""Pages over HTTP and HTTPS by aiohttp, as a Scrapy download handler: faster than Scrapy's own client over Twisted.

It keeps what Scrapy's handler promises: the same settings and meta keys, signals, limits and exceptions. What it does
not have: `bindaddress` for a single request, HTTPS through an HTTPS proxy, Scrapy's DNS settings, request headers that
are not UTF-8, and mercy on header lines without a colon; and `Response.certificate` is DER bytes. Where that matters:
`DOWNLOAD_HANDLERS = {"https": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}`, and the same for http.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

import aiohttp
from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.url import add_http_if_no_scheme
from twisted.python.failure import Failure
from yarl import URL

from threadmill.crawl.listeners import heard
from threadmill.crawl.tls import tls_context

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What aiohttp would say of its own; a request says what Scrapy's middlewares made it say."""
BODILESS = (204, 304)
"""Answers without a body, whatever their headers say of its length."""
HEAD_BYTES = 64 * 1024
"""Longest header line that is read."""


class Answer(aiohttp.ClientResponse):
    """A response that remembers who gave it: small ones have let go of their connection before they can be asked."""

    peer: str = ""
    certificate: bytes | None = None

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        transport = connection.transport
        if transport is not None:
            self.peer = (transport.get_extra_info("peername") or ("",))[0]
            tls = transport.get_extra_info("ssl_object")
            self.certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        return await super().start(connection)


class HttpDownloadHandler(BaseDownloadHandler):
    """`DOWNLOAD_HANDLERS` for http and https."""

    lazy = False
    """To read the machine's certificates takes 60 ms: not while the first request is on its way."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._most = settings.getint("DOWNLOAD_MAXSIZE")
        self._warn = settings.getint("DOWNLOAD_WARNSIZE")
        self._whole = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        bind = settings.get("DOWNLOAD_BIND_ADDRESS")
        self._bind = (bind, 0) if isinstance(bind, str) else bind
        self._tls = tls_context(settings)
        self._opened: aiohttp.ClientSession | None = None

    @property
    def _session(self) -> aiohttp.ClientSession:
        """The client; made with the first request, for it belongs to a running event loop."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # How many there are at a time is the downloader's to say.
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, local_addr=self._bind, ssl=self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=Answer,
            skip_auto_headers=NOT_ADDED,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def download_request(self, request: Request) -> Response:
        """Download a request; raises Scrapy's own download exceptions."""
        timeout = request.meta.get("download_timeout") or self._timeout
        began = time.monotonic()
        try:
            async with self._session.request(
                request.method,
                URL(request.url, encoded=True),
                data=request.body or None,
                timeout=_timeout(timeout),
                allow_redirects=False,
                **_headers(request),
            ) as answer:
                request.meta["download_latency"] = time.monotonic() - began
                return await self._read(request, answer)
        except TimeoutError as error:
            raise DownloadTimeoutError(f"Getting {request.url} took longer than {timeout} seconds.") from error
        except aiohttp.InvalidURL as error:
            raise UnsupportedURLSchemeError(str(error)) from error
        except aiohttp.ClientConnectorDNSError as error:
            raise CannotResolveHostError(str(error)) from error
        except aiohttp.ClientSSLError as error:  # somebody is there: it is a connector's error to aiohttp only
            raise DownloadFailedError(str(error)) from error
        except aiohttp.ClientConnectorError as error:
            broken = isinstance(error.os_error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError))
            raise (DownloadFailedError if broken else DownloadConnectionRefusedError)(str(error)) from error
        except aiohttp.ClientError as error:
            raise DownloadFailedError(str(error) or type(error).__name__) from error

    async def _read(self, request: Request, answer: aiohttp.ClientResponse) -> Response:
        headers = Headers(answer.raw_headers)
        length = answer.content_length
        most = request.meta.get("download_maxsize", self._most)
        warn = request.meta.get("download_warnsize", self._warn)
        if stop := self._told(signals.headers_received, request, headers=headers, body_length=length):
            return _response(request, answer, headers, b"", stop=stop)
        bodiless = request.method == "HEAD" or answer.status in BODILESS
        if most and length and length > most and not bodiless:
            raise _too_large(request, length, most)
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in answer.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if stop := self._told(signals.bytes_received, request, data=piece):
                    return _response(request, answer, headers, b"".join(pieces), stop=stop)
                if most and size > most:
                    raise _too_large(request, size, most)
        except Exception as error:
            lost = isinstance(error, aiohttp.ClientPayloadError)
            if lost and not request.meta.get("download_fail_on_dataloss", self._whole):
                return _response(request, answer, headers, b"".join(pieces), flags=["dataloss"])
            pieces.clear()  # the error holds this frame, and others hold the error until they have told of it
            if lost:
                raise ResponseDataLossError(str(error)) from error
            raise
        if warn and size > warn:
            logger.warning("%s has %d bytes, more than DOWNLOAD_WARNSIZE (%d)", request, size, warn)
        unbounded = length is None and not bodiless and "Transfer-Encoding" not in headers
        return _response(request, answer, headers, b"".join(pieces), flags=["partial"] if unbounded else None)

    def _told(self, signal: object, request: Request, **what: Any) -> StopDownload | None:
        """Tell a signal's listeners, if there are any; what one of them raises to stop the download."""
        if not heard(signal, self.crawler):
            return None
        told = self.crawler.signals.send_catch_log(signal, request=request, spider=self.crawler.spider, **what)
        stops = (result.value for _, result in told if isinstance(result, Failure))
        return next((error for error in stops if isinstance(error, StopDownload)), None)


def _response(
    request: Request,
    answer: aiohttp.ClientResponse,
    headers: Headers,
    body: bytes,
    *,
    flags: list[str] | None = None,
    stop: StopDownload | None = None,
) -> Response:
    url = request.url.partition("#")[0]
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    version = answer.version
    response = kind(
        url=url,
        status=answer.status,
        headers=headers,
        body=body,
        flags=[*(flags or ()), "download_stopped"] if stop else flags,
        certificate=answer.certificate if isinstance(answer, Answer) else None,
        ip_address=_address(answer.peer) if isinstance(answer, Answer) else None,
        protocol=f"HTTP/{version.major}.{version.minor}" if version else None,
    )
    if stop is not None and stop.fail:
        stop.response = response
        raise stop
    return response


def _too_large(request: Request, size: int, most: int) -> DownloadCancelledError:
    return DownloadCancelledError(f"{request} has {size} bytes, more than DOWNLOAD_MAXSIZE ({most})")


def _headers(request: Request) -> dict[str, Any]:
    """A request's headers and proxy, as aiohttp takes them. What is meant for the proxy does not go to the site."""
    headers = [(name.decode(), value.decode()) for name, values in request.headers.items() for value in values]
    proxy = request.meta.get("proxy")
    if not proxy and "Proxy-Authorization" not in request.headers:
        return {"headers": headers}
    if proxy and urlparse_cached(request).scheme == "http":  # the proxy is who reads the request
        return {"headers": headers, "proxy": add_http_if_no_scheme(proxy)}
    secret = request.headers.get("Proxy-Authorization")
    return {
        "headers": [(name, value) for name, value in headers if name != "Proxy-Authorization"],
        "proxy": add_http_if_no_scheme(proxy) if proxy else None,
        "proxy_headers": {"Proxy-Authorization": secret.decode("latin-1")} if proxy and secret else None,
    }


@lru_cache
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)


@lru_cache
def _address(peer: str) -> IPv4Address | IPv6Address | None:
    return ip_address(peer.partition("%")[0]) if peer else None
