"""Scrapy's scheduler: a local buffer of requests this worker has leased. The queue itself is in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro

from threadmill.crawl.page import PARENT, Page

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from threadmill.crawl.worker import Worker


class Scheduler(BaseScheduler):
    """`next_request` pops the buffer; `enqueue_request` sorts out where a request comes from."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._buffer = worker.buffer

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        from threadmill.crawl.addon import worker_of  # noqa: PLC0415 - the add-on names this class

        return cls(worker_of(crawler))

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._worker.open(spider))

    def close(self, reason: str) -> Deferred[None]:
        """Give back what was not begun. Shared state is never flushed here: others are working on it."""
        return deferred_from_coro(self._worker.close())

    def has_pending_requests(self) -> bool:
        return bool(self._buffer) or self._worker.expects_more

    def enqueue_request(self, request: Request) -> bool:
        """Take a request from the engine. Returns False when its page is settled already; then it is dropped."""
        parent: Page | None = request.meta.pop(PARENT, None)
        if parent is not None:
            return self._worker.settler.add_child(parent, request)
        page = Page.of(request)
        if page is None:
            return self._worker.add_root(request)
        if page.settled:
            return False
        page.request = request
        page.begun = False
        self._worker.guard(request)
        if page.express:
            self._buffer.appendleft(request)
        else:
            self._buffer.append(request)
        return True

    def next_request(self) -> Request | None:
        while self._buffer:
            request = self._buffer.popleft()
            page = Page.of(request)
            self._worker.took(len(self._buffer))
            if page is None or page.settled:
                continue
            if page.lane.paused:
                self._worker.settler.release(page)
                continue
            page.begun = True
            return request
        return None
