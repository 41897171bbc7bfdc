"""Scrapy's dupefilter component: the fingerprint, and nothing else.

Whether a request was seen is decided in Redis inside the commit that queues it (`store/filters.py`): asking before
would be a round trip, and wrong by the time the answer came. So `request_seen` never stops a request here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.dupefilters import BaseDupeFilter

from threadmill.store.filters import fingerprint

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class FleetDupeFilter(BaseDupeFilter):
    """Gives requests the 64-bit ids under which the fleet remembers them; equal for reordered query arguments."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def fingerprint(self, request: Request) -> str:
        """The request's id, from Scrapy's own request fingerprint; empty for `dont_filter` requests."""
        if request.dont_filter:
            return ""
        fingerprinter = self._crawler.request_fingerprinter
        if fingerprinter is None:
            raise RuntimeError("the crawler has no request fingerprinter yet")
        return fingerprint(fingerprinter.fingerprint(request))

    def request_seen(self, request: Request) -> bool:
        return False
