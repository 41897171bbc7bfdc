"""The tap: takes a page's items at its callback, where nothing between there and the engine wants to see them.

Scrapy passes each output through every spider middleware's generator, one item at a time. What that costs:
`make bench BENCH=levers`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from inspect import isasyncgen
from types import GeneratorType
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

Take = Callable[[Any], Any]
"""Takes in an output that belongs to the page's commit (and returns None), or returns it for Scrapy to see."""


class Tap:
    """Stands for a request's callback for the one call that Scrapy makes."""

    def __init__(self, callback: Callable[..., Any] | None, spider: Spider, take: Take) -> None:
        self.callback = callback
        self._spider = spider
        self._take = take

    def __call__(self, response: Response, **kwargs: Any) -> Any:
        if response.request is not None:
            response.request.callback = self.callback  # a callback may look at it, or copy the request
        callback = self.callback or self._spider._parse
        output = callback(response, **kwargs)
        if isinstance(output, (GeneratorType, list, tuple)):
            return self._taken(output)
        if isasyncgen(output):
            return self._taken_async(output)
        return output

    def _taken(self, output: Any) -> Iterator[Any]:
        take = self._take
        for each in output:
            if (passed := take(each)) is not None:
                yield passed

    async def _taken_async(self, output: Any) -> AsyncIterator[Any]:
        async for each in output:
            if (passed := self._take(each)) is not None:
                yield passed


def untap(request: Request) -> None:
    """Give a request its own callback back: an errback was called instead, and may look at it or copy the request."""
    if isinstance(request.callback, Tap):
        request.callback = request.callback.callback


def lets_items_pass(middleware: Any) -> bool:
    """Whether a spider middleware leaves items as they are: Scrapy's own do, they look at requests only."""
    return type(middleware).__module__.startswith("scrapy.spidermiddlewares.")
