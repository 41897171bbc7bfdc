"""Nothing is fetched off the source's hosts: no first request, no redirect, no robots.txt that leads elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class OffHostError(IgnoreRequest):
    """A request, or a redirect, for a host that is not the source's."""


class HostGuard:
    """The downloader middleware nearest the engine. Asks the spider's `allows(request)`, if it has one."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        allows = getattr(self._crawler.spider, "allows", None)
        if allows is not None and not allows(request):
            raise OffHostError(f"{request.url} is not on the source's hosts")
