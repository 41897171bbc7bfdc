"""Settlement: sees every way a page can end, and settles it exactly once.

Scrapy has no "request finished" hook. This spider middleware, nearest the engine, sees a callback's whole output; a
wrapped errback sees what was never downloaded; signals see the items that take Scrapy's own path. A page is settled
when its output is exhausted and each of its items has left the item pipelines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import orjson
from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.exceptions import CloseSpider
from scrapy.extensions.corestats import CoreStats
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from threadmill.crawl.listeners import receivers
from threadmill.crawl.page import PAGE, PARENT, GivenBack, GuardedErrback, Page
from threadmill.crawl.tap import Tap, lets_items_pass, untap
from threadmill.model.errors import TaskError
from threadmill.model.task import Task
from threadmill.store.work import Met, PageCommit

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from threadmill.crawl.worker import Worker


class Settlement:
    """A spider middleware; the add-on puts it nearest the engine."""

    def __init__(self, crawler: Crawler, worker: Worker) -> None:
        self._crawler = crawler
        self._worker = worker
        self._direct = self._tapped = False
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        from threadmill.crawl.addon import worker_of  # noqa: PLC0415 - the add-on names this class

        settlement = cls(crawler, worker_of(crawler))
        connect = crawler.signals.connect
        connect(settlement.opened, signal=signals.spider_opened)
        connect(settlement.request_scheduled, signal=signals.request_scheduled)
        return settlement

    def opened(self) -> None:
        """Items go straight to the page's commit, unless somebody in this project wants to see them on their way."""
        pipelines = self._crawler.settings.getdict("ITEM_PIPELINES")
        listeners = [
            receiver
            for signal in (signals.item_scraped, signals.item_dropped, signals.item_error)
            for receiver in receivers(signal, self._crawler)
            if not isinstance(getattr(receiver, "__self__", None), CoreStats)
        ]
        self._direct = not pipelines and not listeners
        middlewares = self._crawler.engine.scraper.spidermw.middlewares if self._crawler.engine else ()
        self._tapped = self._direct and all(each is self or lets_items_pass(each) for each in middlewares)
        if not self._direct:
            connect = self._crawler.signals.connect
            connect(self.item_scraped, signal=signals.item_scraped)
            connect(self.item_dropped, signal=signals.item_dropped)
            connect(self.item_error, signal=signals.item_error)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own start, if it has one, and then the feed for as long as the service runs.

        As long as this does not end the spider is never idle; when the engine stops it cancels it, and that is how the
        worker learns that it shall take no more.
        """
        feeding = asyncio.ensure_future(self._worker.feed())
        try:
            async for output in start:
                yield output
            await feeding
        except asyncio.CancelledError:
            self._worker.stop()
            raise

    # What a callback yields ------------------------------------------------------------------------------------------

    def process_spider_input(self, response: Response) -> None:
        request, spider = response.request, self._crawler.spider
        if self._tapped and request is not None and spider is not None and (page := Page.of(request)) is not None:
            request.callback = Tap(request.callback, spider, partial(self._take, page))

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        page = Page.of(response.request)
        if page is None:
            async for output in result:
                yield output
            return
        if page.settled:  # given back, or lost: what it says now is nobody's
            async for _ in result:
                pass
            return
        page.passes += 1
        try:
            async for output in result:
                if (passed := self._collect(page, output)) is not None:
                    yield passed
        except (Exception, asyncio.CancelledError) as error:
            self._failed(page, error)
            raise
        finally:
            page.passes -= 1
        # A middleware that recovered from an exception begins its own output in this very step of the event loop.
        self._worker.soon(self._exhausted, page)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """Nobody handled what a callback raised. It goes on to Scrapy, which logs it."""
        page = Page.of(response.request)
        if page is not None:
            self._failed(page, exception)

    def _collect(self, page: Page, output: Any) -> Any:
        """Take in what belongs to the page's commit; return what Scrapy has to see."""
        if output is None:
            return None
        if isinstance(output, Request):
            output.meta.pop(PAGE, None)  # callbacks copy meta; a lease is not inherited
            output.meta[PARENT] = page
            # Handed to the engine now, not yielded: Scrapy takes outputs up later, when the page may be settled.
            engine = self._crawler.engine
            if engine is not None:
                engine.crawl(output)
            return None
        if self._direct or isinstance(output, Task | Met):
            return self._take(page, output)
        page.outstanding += 1
        return output

    def _take(self, page: Page, output: Any) -> Any:
        """Take in an item, a task, or what becomes of the posts a board listed; return anything else."""
        if output is None or isinstance(output, Request):
            return output
        if page.settled:  # given back, or lost: what it says now is nobody's
            return None
        if isinstance(output, Task):
            stage = page.lane.store.stage
            if output.stage not in stage.hands_to:
                raise TaskError("wrong-stage", f"stage {stage.name} does not hand down to {output.stage!r}")
            page.work.subtasks.append(output.checked())
        elif isinstance(output, Met):
            page.work.met = output
        else:
            page.work.items.append(dump_item(output))
        return None

    def _exhausted(self, page: Page) -> None:
        if page.passes == 0:
            page.exhausted = True
            self._finish(page)

    def _finish(self, page: Page) -> None:
        if page.exhausted and page.outstanding == 0 and not page.settled:
            if self._direct and page.work.items:
                self._worker.stats.inc_value("item_scraped_count", len(page.work.items))
            self._worker.settler.commit(page)

    def _failed(self, page: Page, error: BaseException | None) -> None:
        if page.settled or error is None:
            return
        if isinstance(error, CloseSpider):
            self._worker.settler.release(page)
        else:
            self._worker.settler.fail(page, error)

    def _failed_unseen(self, page: Page, error: BaseException | None) -> None:
        """The same where Scrapy does not look for CloseSpider: the spider closes all the same."""
        self._failed(page, error)
        engine = self._crawler.engine
        if isinstance(error, CloseSpider) and engine is not None:
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason=error.reason or "cancelled"))

    # What was never downloaded ---------------------------------------------------------------------------------------

    def guard(self, request: Request) -> None:
        """Make sure that a leased request's failure comes here."""
        if not isinstance(request.errback, GuardedErrback):
            request.errback = GuardedErrback(self.download_failed, request.errback)

    async def download_failed(self, failure: Failure, original: Callable[..., Any] | None) -> AsyncIterator[Any]:
        """Collect an errback's output; Scrapy passes it through spider middlewares only if there was a response."""
        request: Request = failure.request  # type: ignore[attr-defined]
        _drop_frames(failure.value and failure.value.__cause__)
        untap(request)
        page = Page.of(request)
        if page is None or page.settled:
            return
        if isinstance(failure.value, GivenBack):
            self._worker.settler.release(page)
            return
        if original is None:
            self._failed_unseen(page, failure.value)
            return
        try:
            output = original(failure)
            output = await output if isawaitable(output) else output
            if isinstance(output, Failure):
                self._failed_unseen(page, output.value)
                return
            async for each in as_async_generator(iterate_spider_output(output)):
                if isinstance(failure.value, HttpError):
                    yield each
                elif (passed := self._collect(page, each)) is not None:
                    yield passed
        except (Exception, asyncio.CancelledError) as raised:
            self._failed_unseen(page, raised)
            raise
        if not isinstance(failure.value, HttpError):
            self._exhausted(page)

    def request_scheduled(self, request: Request) -> None:
        """A leased request may be dropped on its way to the scheduler (off-site, say): then its page ends here."""
        page = Page.of(request)
        if page is not None and page.request is not request:
            self._worker.soon(self._ended_if_dropped, page, request)

    def _ended_if_dropped(self, page: Page, request: Request) -> None:
        if page.request is not request and not page.settled:
            page.work = PageCommit(page.lease.id, outcome="ignored", key=page.work.key)
            self._worker.settler.commit(page)

    # Items that take Scrapy's path -----------------------------------------------------------------------------------

    def item_scraped(self, item: Any, response: Response | None) -> None:
        if page := self._page_of(response):
            try:
                page.work.items.append(dump_item(item))
            except TypeError as error:
                self._failed(page, error)
            else:
                self._item_left(page)

    def item_dropped(self, item: Any, response: Response | None) -> None:
        if page := self._page_of(response):
            self._item_left(page)

    def item_error(self, item: Any, response: Response | None, failure: Failure) -> None:
        """An item was lost in a pipeline: the page is tried again rather than stored without it."""
        if page := self._page_of(response):
            self._failed_unseen(page, failure.value)

    def _page_of(self, response: Any) -> Page | None:
        page = Page.of(getattr(response, "request", None))
        return None if page is None or page.settled else page

    def _item_left(self, page: Page) -> None:
        page.outstanding -= 1
        self._finish(page)


def _drop_frames(error: BaseException | None) -> None:
    """Let go of the frames that a cause holds: Scrapy leaves what a bomb unpacked to in one of them, and its errors
    stand in circles, so that each would keep its 16 MiB until the garbage collector comes round."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def dump_item(item: Any) -> bytes:
    """An item as JSON; raises `TypeError` naming what cannot be written."""
    return orjson.dumps(item if type(item) is dict else ItemAdapter(item).asdict(), option=orjson.OPT_NON_STR_KEYS)
