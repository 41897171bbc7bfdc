"""Scrapy's dupefilter component: the fingerprint, and nothing else.

Whether a request was seen is decided in Redis inside the commit that queues it (`store/filters.py`): asking before
would be a round trip, and wrong by the time the answer came. So `request_seen` never stops a request here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.request import RequestFingerprinter
from w3lib.url import canonicalize_url

from threadmill.store.filters import fingerprint

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


CANONICAL = re.compile(r"https?://[a-z0-9.-]+(:([1-9][0-9]{0,3}|[1-5][0-9]{4}))?(/(?!\.)[A-Za-z0-9_.~-]*)+")
"""Most pages' URLs: those that `canonicalize_url` leaves as they are, which takes it 30 us to find out."""


class FleetDupeFilter(BaseDupeFilter):
    """Gives requests the 64-bit ids under which the fleet remembers them; equal for reordered query arguments."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def fingerprint(self, request: Request) -> str:
        """The request's id: method, canonical URL and body, as Scrapy's own, or by the project's fingerprinter.

        Empty for `dont_filter` requests.
        """
        if request.dont_filter:
            return ""
        fingerprinter = self._crawler.request_fingerprinter
        if fingerprinter is None:
            raise RuntimeError("the crawler has no request fingerprinter yet")
        if type(fingerprinter) is not RequestFingerprinter:  # the project says what is the same
            return fingerprint(fingerprinter.fingerprint(request))
        url = request.url
        if not CANONICAL.fullmatch(url) and not request.meta.get("verbatim_url"):
            url = canonicalize_url(url)
        return fingerprint(b"\n".join((request.method.encode(), url.encode(), request.body)))

    def request_seen(self, request: Request) -> bool:
        return False
