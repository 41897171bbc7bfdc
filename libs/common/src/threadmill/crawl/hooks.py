"""What a spider may say about its own requests; where it says nothing, Scrapy's ways are used.

A stage's spider keeps requests as page references (`spider.py`); any other Scrapy spider needs none of this but
`requests_for`, and that only if it takes tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy import Request, Spider

from threadmill.crawl import payload
from threadmill.crawl.absence import Absence
from threadmill.crawl.dupefilter import FleetDupeFilter
from threadmill.crawl.payload import Serializer
from threadmill.model.errors import TaskError
from threadmill.model.task import Task


class SpiderHooks:
    """Asks the spider, where it has one of these: `requests_for`, `encode_request`, `decode_request`, `key_of`,
    `absence`, `fingerprint`."""

    def __init__(self, spider: Spider, dupefilter: FleetDupeFilter, serializer: Serializer) -> None:
        self._spider: Any = spider
        self._dupefilter = dupefilter
        self._serializer = serializer

    def requests_for(self, task: Task) -> Iterable[Request]:
        """The root requests of a task; `TaskError` if the spider cannot take it."""
        own = getattr(self._spider, "requests_for", None)
        if own is None:
            raise TaskError("no-requests-for", f"spider {self._spider.name} takes no tasks: give it requests_for(task)")
        return list(own(task))

    def encode(self, request: Request) -> bytes:
        """A request as bytes; `TaskError` if it cannot be written."""
        own = getattr(self._spider, "encode_request", None)
        return bytes(own(request)) if own is not None else payload.encode(request, self._spider, self._serializer)

    def decode(self, data: bytes, source: str) -> Request:
        """A request from bytes; `TaskError`, `ValueError`, `TypeError` or `KeyError` if they are none."""
        own = getattr(self._spider, "decode_request", None)
        request: Request = (
            own(data, source) if own is not None else payload.decode(data, self._spider, self._serializer)
        )
        return request

    def key(self, request: Request) -> str:
        """The key of the task that a request belongs to; empty for a spider without tasks."""
        own = getattr(self._spider, "key_of", None)
        return str(own(request)) if own is not None else ""

    def absence(self, request: Request) -> Absence:
        """What it means that a page is not there (404, 410)."""
        own = getattr(self._spider, "absence", None)
        absence: Absence = own(request) if own is not None else Absence()
        return absence

    def fingerprint(self, request: Request) -> str:
        """The id under which the dupefilter knows the request; empty: do not filter."""
        own = getattr(self._spider, "fingerprint", None)
        return str(own(request)) if own is not None else self._dupefilter.fingerprint(request)
