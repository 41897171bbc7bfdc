"""A worker: one process serving one stage. It owns the connection to Redis and settles pages."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.utils.misc import build_from_crawler, load_object

from threadmill.crawl.control import Control
from threadmill.crawl.counters import Counters
from threadmill.crawl.exchange import Exchange
from threadmill.crawl.feed import Feed
from threadmill.crawl.hooks import SpiderHooks
from threadmill.crawl.lanes import LaneWork
from threadmill.crawl.outcomes import RetryPolicy
from threadmill.crawl.page import Page
from threadmill.crawl.payload import serializer_named
from threadmill.crawl.settler import Settler
from threadmill.crawl.watcher import Watcher
from threadmill.model.config import Config
from threadmill.model.errors import StoreRefused
from threadmill.model.keys import Lane
from threadmill.model.process import new_process_id
from threadmill.model.stages import Stage
from threadmill.store.calls import run
from threadmill.store.configured import configured_marks, configured_store
from threadmill.store.connection import STORE_FAILURES, UNREACHABLE, connect, wait_until_ready
from threadmill.store.purge import flush_stage
from threadmill.store.status import run_books

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from threadmill.crawl.stats import FleetStats

logger = logging.getLogger(__name__)

CLOSE_S = 10.0
"""How long a closing worker waits for Redis to take its last settlements."""


def stop_reactor() -> None:
    """End the process's event loop, as Scrapy does on a second signal: its downloads would be waited for otherwise."""
    from twisted.internet import reactor  # noqa: PLC0415 - it must not be imported before Scrapy installs it

    loop: Any = reactor
    if loop.running:
        loop.stop()


class Worker:
    """Ties feed, exchange and watcher together, and is what the Scrapy components talk to."""

    def __init__(self, crawler: Crawler, config: Config, stage: Stage, lanes: list[tuple[Lane, float | None]]) -> None:
        """`lanes` are the lanes served, each with its share of the site's rate (requests/s; None = no limit)."""
        self.id = new_process_id()
        self._crawler = crawler
        self._config = config
        self._url = config.redis_url.get_secret_value()
        self._client, self._watcher_client = connect(self._url), connect(self._url)
        self.lanes = [
            LaneWork.serving(
                self._client,
                configured_store(config, lane, stage),
                self.id,
                int(1e6 / rate) if rate else 0,
                configured_marks(config),
            )
            for lane, rate in lanes
        ]
        self.buffer: deque[Request] = deque()
        """Leased requests that the engine has not taken yet; the scheduler's."""
        self._closing: asyncio.Future[None] | None = None

    @property
    def stats(self) -> FleetStats:
        stats: Any = self._crawler.stats
        return stats  # type: ignore[no-any-return]

    @property
    def expects_more(self) -> bool:
        """Whether work may still come: an idle spider is not a finished one."""
        return not self._feed.stopped

    async def open(self, spider: Spider) -> None:
        self._loop = asyncio.get_running_loop()
        settings = self._crawler.settings
        dupefilter = build_from_crawler(load_object(settings["DUPEFILTER_CLASS"]), self._crawler)
        self.hooks = SpiderHooks(spider, dupefilter, serializer_named(settings.get("SCHEDULER_SERIALIZER")))
        self._exchange = Exchange(self._client, self.lanes, self._config.max_failures, telling=self._config.post_events)
        self._feed = Feed(
            self._exchange,
            self.lanes,
            self.hooks,
            worker=self.id,
            concurrency=self._config.concurrency,
            lease_ttl_ms=self._config.lease_ttl_ms,
        )
        policy = RetryPolicy(self._config.retry_base_ms, self._config.retry_max_ms)
        self.settler = Settler(self._exchange, self._feed, self.hooks, policy, self.lanes, self._config.max_failures)
        self._counters = Counters(self.stats, self.lanes[0].store, self.id)
        self._exchange.board(self._counters)
        self._watcher = Watcher(
            self._watcher_client,
            self.lanes,
            worker=self.id,
            lease_ttl_ms=self._config.lease_ttl_ms,
            max_deliveries=self._config.max_deliveries,
            held=self._feed.held,
            deliver=self._feed.deliver,
            look=self._feed.look,
            lost=self._feed.lost,
        )
        self._feed.on_watch = self._watch
        self._control = Control(self._crawler, self._feed, self.settler, self.buffer, self.lanes)
        self._feed.on_word = self._heed
        await self._exchange.in_thread(self._arrive)
        gc.freeze()  # what was imported stays; looking through it at every full collection takes 8 % of the CPU
        self._exchange.start()
        self._watcher.start()
        logger.info("worker %s serves %s", self.id, ", ".join(lane.store.keys.base for lane in self.lanes))

    async def feed(self) -> None:
        """Hand leased requests to the engine for as long as the service runs, or until it was idle for too long."""
        self._feed.start()
        engine = self._crawler.engine
        idle = self._config.idle_close_ms / 1000
        while not self._feed.stopped and engine is not None:
            try:
                batch = await asyncio.wait_for(self._feed.batch(), timeout=min(idle, 1.0) if idle else None)
            except TimeoutError:
                since = self._feed.idle_since
                if since is not None and self._loop.time() - since >= idle:
                    logger.info("no work for %g s; closing", idle)
                    self.stop()
                continue
            for request in batch:
                try:
                    engine.crawl(request)
                except RuntimeError:  # the spider was closed in this very moment
                    if (page := Page.of(request)) is not None:
                        self.settler.release(page)

    def stop(self) -> None:
        """Take no more work; what is under way may finish for `grace_ms`, then it is given back."""
        if not self._feed.stopped:
            self._feed.stop()
            self._loop.call_later(self._config.grace_ms / 1000, self._overdue)

    async def close(self) -> None:
        """Settle, give back, say goodbye: once, however many ask for it."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._feed.stop()
        self._watcher.stop()
        self._give_back()
        self._counters.finish()
        await self._exchange.close(CLOSE_S)
        await self._loop.run_in_executor(None, self._leave)

    def _arrive(self) -> None:
        """Make known to Redis that this worker is there; if Redis goes away meanwhile, once it is back."""
        while True:
            wait_until_ready(self._client, self._url, wait_ms=self._config.redis_wait_ms, tell=logger.warning)
            try:
                return self._introduce()
            except UNREACHABLE as error:
                logger.warning("Redis went away while the worker started (%s); trying again", error)
            except STORE_FAILURES as error:
                raise StoreRefused(f"Redis refused this worker: {error}; `threadmill doctor` says why") from None

    def _introduce(self) -> None:
        self.lanes[0].store.load(self._client)
        waiting = 0
        for lane in self.lanes:
            store = lane.store
            if self._crawler.settings.getbool("SCHEDULER_FLUSH_ON_START"):
                flush_stage(self._client, store.lane, store.stage.name)
            lane.streams.ensure_groups()
            run(self._client, store.report(self.id, -1, {}))
            waiting += run_books(self._client, store.lane, store.stage.name).open
        if waiting:
            logger.info("Resuming crawl (%d requests scheduled)", waiting)

    def _leave(self) -> None:
        try:
            self._watcher.unblock(self._client)
            self._watcher.join(5)
            for lane in self.lanes:
                run(self._client, lane.store.leave(self.id))
        except Exception as error:
            logger.warning("could not say goodbye to Redis (%s); the others will notice", error)
        self._client.close()
        self._watcher_client.close()

    def _overdue(self) -> None:
        """Pages in flight did not finish in time: give them back, and end without waiting for their downloads."""
        if self._closing is None:
            asyncio.ensure_future(self.close()).add_done_callback(lambda _: stop_reactor())

    def _give_back(self) -> None:
        pages = [page for page in list(self._feed.held.values()) if not page.settled]
        if pages:
            logger.info("giving back %d pages that were not finished", len(pages))
        for page in pages:
            self.settler.release(page)

    def _heed(self, lane: LaneWork) -> None:
        """Operators want something else of this lane."""
        self._control.heed(lane)
        self._loop.call_soon(self._end_read)  # when the watcher knows what it shall wait for from now on

    def _watch(self, lanes: frozenset[LaneWork]) -> None:
        self._watcher.watch(lanes)
        self._end_read()

    def _end_read(self) -> None:
        """A blocking read that is astray ends now, not in its own time."""
        if self._watcher.astray and not self._feed.stopped:
            asyncio.ensure_future(self._exchange.in_thread(self._unblock))  # noqa: RUF006

    def _unblock(self) -> None:
        try:
            self._watcher.unblock(self._client)
        except STORE_FAILURES as error:
            logger.debug("the watcher's read could not be ended: %s", error)

    def guard(self, request: Request) -> None:
        """Make sure that a leased request's failure is settled."""
        self._settlement.guard(request)

    def took(self, left: int) -> None:
        """The engine took a request from the scheduler's buffer, which now holds `left`."""
        self._feed.took(left)

    def add_root(self, request: Request) -> bool:
        """A request that no page asked for goes into the shared queue."""
        return self.settler.add_root(self.lanes[0], request)

    def soon(self, act: Callable[..., None], *args: Any) -> None:
        self._loop.call_soon(act, *args)

    @cached_property
    def _settlement(self) -> Any:
        from threadmill.crawl.settlement import Settlement  # noqa: PLC0415 - settlement imports this module's types

        settlement = self._crawler.get_spider_middleware(Settlement)
        if settlement is None:
            raise RuntimeError(
                "the settlement middleware is missing; enable the add-on threadmill.crawl.addon.Threadmill"
            )
        return settlement
