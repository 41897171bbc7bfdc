"""A spider whose callbacks give their items in every way that Scrapy takes them, and middlewares that look on.

Run as a process, as `crawl.spiders` is: the first part of a task's key names the callback.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from scrapy import Field, Item, Request
from scrapy.http import Response

from crawl.spiders import PageSpider, main
from threadmill.model.task import Task


class PageItem(Item):  # type: ignore[misc]
    path = Field()
    extra = Field()


@dataclass
class PageRow:
    path: str
    extra: Any = 0


class TapSpider(PageSpider):
    def requests_for(self, task: Task) -> Iterator[Request]:
        callback = getattr(self, f"on_{task.key.partition('/')[0]}", None)
        yield Request(f"{self.site}/{task.key}", callback=callback, errback=self.on_error)

    def item(self, response: Response, extra: Any) -> dict[str, Any]:
        return {"path": response.url.removeprefix(self.site), "extra": extra}

    def on_generator(self, response: Response) -> Iterator[Any]:
        yield self.item(response, 1)
        yield None
        yield self.item(response, 2)

    def on_list(self, response: Response) -> list[Any]:
        return [self.item(response, 1), None, self.item(response, 2)]

    def on_tuple(self, response: Response) -> tuple[Any, ...]:
        return self.item(response, 1), self.item(response, 2)

    def on_iterator(self, response: Response) -> Iterator[Any]:
        return map(lambda extra: self.item(response, extra), (1, 2))  # noqa: C417 - neither a generator nor a list

    def on_dict(self, response: Response) -> dict[str, Any]:
        return self.item(response, 1)

    def on_none(self, response: Response) -> None:
        return None

    async def on_async(self, response: Response) -> AsyncIterator[Any]:
        yield self.item(response, 1)
        yield None
        yield self.item(response, 2)

    async def on_coroutine(self, response: Response) -> list[Any]:
        return [self.item(response, 1), self.item(response, 2)]

    async def on_coroutinedict(self, response: Response) -> dict[str, Any]:
        return self.item(response, 1)

    async def on_coroutinenone(self, response: Response) -> None:
        return None

    def on_items(self, response: Response) -> Iterator[Any]:
        yield PageItem(self.item(response, 1))
        yield PageRow(**self.item(response, 2))

    def on_replace(self, response: Response, extra: int = 1) -> Iterator[Any]:
        assert response.request is not None
        yield self.item(response, f"{extra} by {getattr(response.request.callback, '__name__', None)}")
        if extra == 1:  # the same page again, for the same callback
            yield response.request.replace(dont_filter=True, cb_kwargs={"extra": 2})

    def on_raise(self, response: Response) -> Iterator[Any]:
        yield self.item(response, 1)
        raise ValueError("the callback has a bug")

    async def on_asyncraise(self, response: Response) -> AsyncIterator[Any]:
        yield self.item(response, 1)
        raise ValueError("the callback has a bug")

    def on_flaky(self, response: Response) -> Iterator[Any]:
        yield self.item(response, 1)

    def on_error(self, failure: Any) -> Iterator[Any]:
        """Ask for the page again at once, as errbacks do that know better than to wait."""
        yield {"path": "error", "extra": getattr(failure.request.callback, "__name__", None)}
        yield failure.request.replace(dont_filter=True, errback=None)


class Onlooker:
    """Counts the items that pass by."""

    def __init__(self, crawler: Any) -> None:
        self.stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Any) -> Onlooker:
        return cls(crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            if each is not None and not isinstance(each, Request):
                self.stats.inc_value("items_seen")
            yield each


class Recovering:
    """Has an item for a callback that failed."""

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Any]:
        return [{"path": "recovered", "extra": str(exception)}]


class Passing:
    """A pipeline that leaves items as they are."""

    def process_item(self, item: Any) -> Any:
        return item


class Tagging:
    """Changes first items, and leaves second ones out."""

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            if each is not None and each["extra"] != 2:
                yield {**each, "extra": "tagged"} if each["extra"] == 1 else each


if __name__ == "__main__":
    main(TapSpider)
