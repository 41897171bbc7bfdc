"""A replica of a real stage, the comment collector, that says at its end what it did.

`python -m bench.replica` takes its settings from the environment as `python -m comment_collector` does, and writes a
`Tally` as JSON to `$BENCH_FOLDER/<process id>.json`. `BENCH_PAGING` is `chained` (the service as it is) or `fanned`.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson
from scrapy.http import Response

from bench.redis_usage import count_calls
from comment_collector import settings
from comment_collector.spider import CommentCollector
from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.reference import PageReference
from threadmill.crawl.service import run_stage
from threadmill.crawl.spider import REFERENCE
from threadmill.ops.service import run_service


@dataclass(frozen=True, slots=True)
class Tally:
    """What a replica did in its life: pages parsed, requests sent to Redis (a pipeline is one), CPU in s."""

    pages: int
    redis_calls: int
    cpu_s: float


class Chained(CommentCollector):
    """The service's own spider: every page leads to the next. Counts its pages."""

    calls: ClassVar[Iterator[int]]
    _pages = 0

    def parse(self, response: Response, **kwargs: Any) -> Iterable[Any]:
        self._pages += 1
        return super().parse(response, **kwargs)

    def closed(self, reason: str) -> None:
        """Scrapy calls it when the spider is closed."""
        tally = Tally(self._pages, next(self.calls), time.process_time())
        Path(os.environ["BENCH_FOLDER"], f"{os.getpid()}.json").write_text(json.dumps(asdict(tally)))


class Fanned(Chained):
    """The first page tells how many there are, and leads to all of them at once."""

    def parse(self, response: Response, **kwargs: Any) -> Iterable[Any]:
        yield from super().parse(response, **kwargs)
        reference: PageReference = response.meta[REFERENCE]
        first = self.extractors[reference.source].rules.paging.first_page
        if reference.number == first:
            for number in range(first + 1, first + orjson.loads(response.body)["pages"]):
                yield self.request(reference.following(number, reference.params))

    def collect(self, page: CollectedPage) -> Iterable[Any]:
        yield from page.items


PAGING: dict[str, type[Chained]] = {"chained": Chained, "fanned": Fanned}


def main() -> int:
    """Serves the stage until SIGTERM."""
    Chained.calls = count_calls()  # before anything connects
    spider = PAGING[os.environ["BENCH_PAGING"]]
    return run_service(spider.name, lambda config: run_stage(config, spider, settings))


if __name__ == "__main__":
    sys.exit(main())
