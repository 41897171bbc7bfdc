"""Crawls in a process of its own, one after another: by Scrapy's downloader, or by ours. No Redis, no leases.

`Crawls` is the test's end; `python -m crawl.crawls` the other: a line of JSON is a crawl, a line comes back.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response, TextResponse
from scrapy.utils.reactor import install_reactor
from twisted.internet.defer import Deferred

HANDLER = "threadmill.crawl.http.HttpDownloadHandler"
SIDES: dict[str, dict[str, Any]] = {
    "scrapy": {},
    "threadmill": {
        "DOWNLOADER": "threadmill.crawl.downloader.Downloader",
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
    },
}
QUIET = {"RETRY_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "LOG_LEVEL": "ERROR"}
SECONDS = 20
"""A crawl that takes longer has failed."""


class Crawls:
    """A process that crawls on one of the sides."""

    def __init__(self, side: str) -> None:
        self.side = side
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crawl.crawls", side],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *requests: str | dict[str, Any], **order: Any) -> dict[str, Any]:
        """Crawl URLs or requests (as `Request`'s arguments); `settings`, `hear`, `stop` and `does` say how.

        Returns `pages` and `errors` in the order in which they came, `events` and `stats`.
        """
        order["requests"] = [{"url": each} if isinstance(each, str) else each for each in requests]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the crawling process has ended"
        report: dict[str, Any] = json.loads(line)
        return report

    def page(self, request: str | dict[str, Any], **order: Any) -> dict[str, Any]:
        """The one page of a crawl."""
        report = self(request, **order)
        [page] = report["pages"]
        assert not report["errors"]
        return dict(page)

    def error(self, request: str | dict[str, Any], **order: Any) -> str:
        """The one error of a crawl: its class."""
        report = self(request, **order)
        [error] = report["errors"]
        assert not report["pages"]
        return str(error["error"])

    def end(self) -> None:
        self._process.communicate(timeout=10)


# The other end ------------------------------------------------------------------------------------------------------


class Crawl(Spider):
    """Asks for what it is ordered to, and keeps what came."""

    name = "crawl"
    order: dict[str, Any]
    report: dict[str, Any]

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Crawl:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in spider.order.get("hear", ()):
            crawler.signals.connect(Ear(spider, name).hear, signal=getattr(signals, name), weak=False)
        return spider

    def happened(self, *event: str) -> None:
        self.report["events"].append(list(event))

    async def start(self) -> AsyncIterator[Any]:
        for arguments in self.order["requests"]:
            yield Request(**arguments, callback=self.parse, errback=self.failed, dont_filter=True)

    async def parse(self, response: Response) -> None:
        self.report["pages"].append(_seen(response))
        if self.order.get("does") == "fetch more":
            assert self.crawler.engine is not None
            more = await self.crawler.engine.download_async(Request(f"{response.url}/more"))
            self.report["pages"].append(_seen(more))

    def failed(self, failure: Any) -> None:
        error = failure.value
        self.report["errors"].append(
            {
                "url": failure.request.url,
                "error": type(error).__name__,
                "said": str(error),
                "page": _seen(error.response) if getattr(error, "response", None) is not None else None,
            }
        )


class Ear:
    """Notes a signal; may stop the download at it."""

    def __init__(self, spider: Crawl, name: str) -> None:
        self._spider = spider
        self._name = name

    def hear(self, request: Request, **what: Any) -> None:
        spider = self._spider
        detail = what.get("data") or what.get("body_length") or b""
        spider.happened(self._name, request.url, len(detail) if isinstance(detail, bytes) else "")
        stop = spider.order.get("stop", {})
        if stop.get("at") == self._name:
            raise StopDownload(fail=stop["fail"])


def _seen(response: Response) -> dict[str, Any]:
    meta = response.request.meta if response.request is not None else {}
    return {
        "url": response.url,
        "kind": type(response).__name__,
        "status": response.status,
        "body": response.body.decode("latin-1"),
        "text": response.text if isinstance(response, TextResponse) else None,
        "headers": {
            name.decode("latin-1"): [value.decode("latin-1") for value in response.headers.getlist(name)]
            for name in response.headers
        },
        "flags": response.flags,
        "ip": str(response.ip_address),
        "protocol": response.protocol,
        "certificate": response.certificate is not None,
        "latency": meta.get("download_latency"),
        "slot": meta.get("download_slot"),
    }


class Middleware:
    """Notes that it was asked; `acts` says at which path it does what."""

    label = "?"
    made = 0

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        type(self).made += 1

    @classmethod
    def from_crawler(cls, crawler: Any) -> Middleware:
        return cls(crawler)

    def process_request(self, request: Request) -> Any:
        self.note("request", request)

    def process_response(self, request: Request, response: Response) -> Any:
        self.note("response", request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        self.note(f"exception {type(exception).__name__}", request)

    def note(self, what: str, request: Request) -> None:
        self.crawler.spider.happened(self.label, what, _kind(request))


def _kind(request: Request) -> str:
    return request.url.split("/")[3]


class Outer(Middleware):
    """Near the engine."""

    label = "outer"


class Acting(Middleware):
    """In the middle: does what a path says."""

    label = "acting"

    def process_request(self, request: Request) -> Any:
        self.note("request", request)
        answers = {
            "respond": lambda: Response(request.url, body=b"made up"),
            "replace": lambda: request.replace(url=request.url.replace("replace", "page")),
            "ignore": self.ignore,
            "wrong-request": lambda: "neither",
        }
        return answers.get(_kind(request), lambda: None)()

    def process_response(self, request: Request, response: Response) -> Any:
        self.note("response", request)
        if _kind(request) == "wrong-response":
            return None
        if _kind(request) == "again":
            return request.replace(url=request.url.replace("again", "page"))
        if _kind(request) == "raise-response":
            raise IgnoreRequest("seen enough")
        return response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        self.note(f"exception {type(exception).__name__}", request)
        kind = request.url.rpartition("/")[2]
        if kind == "recover":
            return Response(request.url, body=b"recovered")
        if kind == "elsewhere":
            return Request(request.meta["elsewhere"], callback=request.callback, dont_filter=True)
        return "neither" if kind == "wrong-exception" else None

    def ignore(self) -> None:
        raise IgnoreRequest("not wanted")


class Inner(Middleware):
    """Near the network."""

    label = "inner"


class Late(Middleware):
    """Each of its methods is a coroutine."""

    label = "late"

    async def process_request(self, request: Request) -> Any:
        await asyncio.sleep(0.01)
        self.note("request", request)
        return Response(request.url, body=b"in time") if _kind(request) == "respond" else None

    async def process_response(self, request: Request, response: Response) -> Any:
        await asyncio.sleep(0.01)
        self.note("response", request)
        return response.replace(body=response.body + b", late")

    async def process_exception(self, request: Request, exception: Exception) -> Any:
        await asyncio.sleep(0.01)
        self.note(f"exception {type(exception).__name__}", request)
        return Response(request.url, body=b"recovered")


class Deferring(Middleware):
    """Returns Deferreds, as middlewares of before asyncio do."""

    label = "deferring"

    def process_request(self, request: Request) -> Any:
        return self.later(None)

    def process_response(self, request: Request, response: Response) -> Any:
        return self.later(response.replace(body=response.body + b", deferred"))

    def later(self, result: Any) -> Any:
        deferred: Deferred[Any] = Deferred()
        asyncio.get_running_loop().call_later(0.01, deferred.callback, result)
        return deferred


class WantsSpider(Middleware):
    """Written for an older Scrapy: wants the spider everywhere."""

    label = "wants"

    def process_request(self, request: Request, spider: Spider) -> Any:  # type: ignore[override]
        self.note(f"request {spider.name}", request)

    def process_response(self, request: Request, response: Response, spider: Spider) -> Any:  # type: ignore[override]
        self.note(f"response {spider.name}", request)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Spider) -> Any:  # type: ignore[override]
        self.note(f"exception {spider.name}", request)


def middlewares(*names: str) -> dict[str, int]:
    """The setting that puts these in this order, near the engine first."""
    return {f"crawl.crawls.{name}": 10 + at for at, name in enumerate(names)}


async def _crawl(side: str, order: dict[str, Any]) -> dict[str, Any]:
    report: dict[str, Any] = {"pages": [], "errors": [], "events": []}
    Outer.made = 0
    runner = AsyncCrawlerRunner({**QUIET, **SIDES[side], **order.get("settings", {})})
    crawler = runner.create_crawler(Crawl)
    await asyncio.wait_for(runner.crawl(crawler, order=order, report=report), SECONDS)
    downloader_middleware = crawler.get_downloader_middleware(Outer) if crawler.engine else None
    report["made"], report["found"] = Outer.made, isinstance(downloader_middleware, Outer)
    assert crawler.stats is not None
    report["stats"] = {key: value for key, value in crawler.stats.get_stats().items() if isinstance(value, (int, str))}
    return report


async def _serve(side: str) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            report = await _crawl(side, json.loads(line))
        except TimeoutError:
            report = {"pages": [], "errors": [{"error": "the crawl did not end"}], "events": []}
        print(json.dumps(report), flush=True)  # noqa: T201


def main() -> None:
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor  # noqa: PLC0415 - not before it is installed

    asyncio_reactor: Any = reactor

    def begin() -> None:
        serving = asyncio.ensure_future(_serve(sys.argv[1]))
        serving.add_done_callback(lambda _: asyncio_reactor.stop())

    asyncio_reactor.callWhenRunning(begin)
    asyncio_reactor.run()


if __name__ == "__main__":
    import_module("crawl.crawls").main()  # settings name this module's classes: one copy of them
