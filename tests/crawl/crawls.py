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
from scrapy.exceptions import StopDownload
from scrapy.http import Response, TextResponse
from scrapy.utils.reactor import install_reactor

from crawl.middlewares import Outer

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
        except Exception as error:
            report = {"pages": [], "errors": [{"error": f"the crawl failed: {error!r}"}], "events": []}
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
