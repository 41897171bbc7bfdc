"""Who listens to a signal. Sending one to nobody costs Scrapy about 10 us, and a page has seven of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import getAllReceivers, liveReceivers  # Scrapy's signal library; its manager lists nobody

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def receivers(signal: object, crawler: Crawler) -> Iterator[Any]:
    """The live receivers of a crawler's signal."""
    yield from liveReceivers(getAllReceivers(crawler, signal))


def heard(signal: object, crawler: Crawler) -> bool:
    """Whether anybody listens."""
    return any(True for _ in getAllReceivers(crawler, signal))
