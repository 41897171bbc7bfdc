"""Scrapy's downloader, keeping its limits in a burst too: one task a page, and no signal that nobody hears.

Scrapy 2.19 counts a download when its task begins, so that a burst passes `CONCURRENT_REQUESTS_PER_DOMAIN`. Slots,
delays, middlewares and signals are Scrapy's, in Scrapy's order.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader as ScrapyDownloader
from scrapy.core.downloader import Slot
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from threadmill.crawl.listeners import heard
from threadmill.crawl.page import GivenBack, Page

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from threadmill.crawl.lanes import LaneWork


class Downloader(ScrapyDownloader):
    """`DOWNLOADER`: middlewares, then the site's slot, then the download handler."""

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        self.active.add(request)  # now, not when the task begins: the engine looks at it before it starts the next
        done: Deferred[Response | Request] = deferred_from_coro(self.middleware.download_async(self._in_slot, request))
        return done.addBoth(self._left, request)

    def _left(self, result: Response | Request | Failure, request: Request) -> Any:
        """In the same step in which the engine takes the result: in between it would take the spider for idle."""
        self.active.remove(request)
        return result

    async def _in_slot(self, request: Request) -> Response:
        page = Page.of(request)
        if page is not None and (page.settled or page.lane.paused):
            raise GivenBack
        key, slot = self._get_slot(request)
        if page is not None and page.lane.limit is not None:
            slot.concurrency = self._places(key, page.lane.limit)
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

    def give_back(self, lane: LaneWork) -> None:
        """End what waits for its turn at a site and belongs to this lane."""
        for slot in self.slots.values():
            for request, turn in list(slot.queue):
                if (page := Page.of(request)) is not None and page.lane is lane:
                    slot.queue.remove((request, turn))
                    turn.set_exception(GivenBack())  # type: ignore[attr-defined]

    def limit(self, downloads: int) -> None:
        """So many downloads at a time from now on; of each site as many as the lanes say whose pages are under way."""
        self.total_concurrency = downloads
        for key, slot in self.slots.items():
            limits = [page.lane.limit for request in slot.active if (page := Page.of(request)) is not None]
            slot.concurrency = self._places(key, limits[0] if limits else None)
            self._process_queue(slot)

    def _places(self, key: str, limit: int | None) -> int:
        """A site's downloads at a time. An operator's limit does not raise what a project keeps below its total."""
        own = self.per_slot_settings.get(key, {}).get("concurrency", self.ip_concurrency or self.domain_concurrency)
        total = self.settings.getint("CONCURRENT_REQUESTS")
        return int(own if limit is None else limit if own >= total else min(own, limit))

    def _tell(self, signal: object, **what: Any) -> None:
        if heard(signal, self.crawler):
            self.signals.send_catch_log(signal=signal, spider=self.crawler.spider, **what)
