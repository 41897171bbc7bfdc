"""Downloader middlewares that note that they were asked, and do what a path says. `crawl.crawls` crawls with them."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.internet.defer import Deferred


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
    return {f"crawl.middlewares.{name}": 10 + at for at, name in enumerate(names)}
