"""Scrapy's downloader, keeping its limits in a burst too: one task a page, and no signal that nobody hears.

Scrapy 2.19 counts a download when its task begins, so that a burst passes `CONCURRENT_REQUESTS_PER_DOMAIN`. Slots,
delays, middlewares and signals are Scrapy's, in Scrapy's order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader as ScrapyDownloader
from scrapy.core.downloader import Slot
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, ensure_awaitable
from twisted.python.failure import Failure

from threadmill.crawl.listeners import heard

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred


class Downloader(ScrapyDownloader):
    """`DOWNLOADER`: middlewares, then the site's slot, then the download handler."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # The ones that are made already: a middleware may open files or connect to signals when it is made.
        self.middleware = Middlewares(*self.middleware.middlewares, crawler=crawler)

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        self.active.add(request)  # now, not when the task begins: the engine looks at it before it starts the next
        done: Deferred[Response | Request] = deferred_from_coro(self.middleware.download_async(self._in_slot, request))
        return done.addBoth(self._left, request)

    def _left(self, result: Response | Request | Failure, request: Request) -> Any:
        """In the same step in which the engine takes the result: in between it would take the spider for idle."""
        self.active.remove(request)
        return result

    async def _in_slot(self, request: Request) -> Response:
        key, slot = self._get_slot(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self._tell(signals.request_reached_downloader, request=request)
        try:
            if slot.delay or slot.queue or slot.free_transfer_slots() <= 0:
                await self._turn(slot, request)
            else:
                slot.lastseen = monotonic()
                slot.transferring.add(request)
            return await self._transfer(slot, request)
        finally:
            slot.active.remove(request)

    async def _transfer(self, slot: Slot, request: Request) -> Response:
        try:
            response = await self.handlers.download_request_async(request)
            self._tell(signals.response_downloaded, response=response, request=request)
            return response
        finally:
            slot.transferring.remove(request)
            self._process_queue(slot)
            self._tell(signals.request_left_downloader, request=request)

    async def _turn(self, slot: Slot, request: Request) -> None:
        """Wait in the slot's queue for a free place, and for the site's delay to pass."""
        turn: Any = asyncio.get_running_loop().create_future()
        slot.queue.append((request, turn))
        self._process_queue(slot)
        try:
            await turn
        except asyncio.CancelledError:
            if (request, turn) in slot.queue:
                slot.queue.remove((request, turn))
            slot.transferring.discard(request)
            self._process_queue(slot)
            raise

    def _process_queue(self, slot: Slot) -> None:
        while slot.queue and slot.free_transfer_slots() > 0 and not slot.latercall:
            now, delay = monotonic(), slot.download_delay()
            if delay and (wait := slot.lastseen + delay - now) > 0:
                slot.latercall = call_later(wait, self._latercall, slot)
                return
            slot.lastseen = now
            request, turn = slot.queue.popleft()
            slot.transferring.add(request)
            turn.set_result(None)  # type: ignore[attr-defined]

    def _tell(self, signal: object, **what: Any) -> None:
        if heard(signal, self.crawler):
            self.signals.send_catch_log(signal=signal, spider=self.crawler.spider, **what)


class Middlewares(DownloaderMiddlewareManager):
    """Scrapy's downloader middlewares; awaits only what has to be awaited."""

    def __init__(self, *middlewares: Any, crawler: Crawler) -> None:
        super().__init__(*middlewares, crawler=crawler)
        self._on_request = [self._call(method) for method in self.methods["process_request"]]
        self._on_response = [self._call(method) for method in self.methods["process_response"]]

    def _call(self, method: Any) -> Callable[..., Any]:
        """A middleware's method; one that still wants the spider is given it."""
        return partial(self._handle_mw_method, method) if method in self._mw_methods_requiring_spider else method

    async def download_async(
        self, download_func: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        try:
            result = await self._before(request) or await download_func(request)
        except Exception as error:
            result = await self._process_exception(error, request)
        for method in self._on_response:
            if isinstance(result, Request):
                return result
            result = method(request=request, response=result)
            if isawaitable(result):
                result = await ensure_awaitable(result, _warn=_name(method))  # it may be a Deferred
            if not isinstance(result, (Response, Request)):
                raise TypeError(f"{_name(method)} must return Response or Request, got {type(result)}")
        return result

    async def _before(self, request: Request) -> Response | Request | None:
        """Ask the middlewares from the engine's side on; the first that answers is what is gone on with."""
        for method in self._on_request:
            result = method(request=request)
            if isawaitable(result):
                result = await ensure_awaitable(result, _warn=_name(method))  # it may be a Deferred
            if result is not None:
                if not isinstance(result, (Response, Request)):
                    raise TypeError(f"{_name(method)} must return None, Response or Request, got {type(result)}")
                return result
        return None


def _name(method: Any) -> str:
    return getattr(method, "__qualname__", None) or repr(method)
