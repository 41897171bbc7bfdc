"""No crawler at all: 16 loops around a bare aiohttp client, with the same parsing, in memory.

No queue that outlives it, no deduplication, no retries, no items kept: the limit of one Python process that
downloads and parses with aiohttp.
"""

import asyncio
import sys
from itertools import cycle

from aiohttp import ClientSession, TCPConnector

from bench.callbacks import parse_comments, parse_post, post_path
from bench.meter import Meter
from bench.run import Run

_CONNECTIONS = 16


async def crawl(run: Run, meter: Meter) -> None:
    """Crawls until the meter has seen enough."""
    # It remembers nothing, so it may see the posts again and again, and lasts as long as the others.
    posts = cycle(run.post_ids())
    following: list[str] = []
    async with ClientSession(run.site_url, connector=TCPConnector(limit=_CONNECTIONS)) as session:
        over = False

        async def work() -> None:
            nonlocal over
            while not over:
                path = following.pop() if following else post_path(next(posts))
                async with session.get(path) as response:
                    response.raise_for_status()
                    body = await response.read()
                page = (parse_post if "/post/" in path else parse_comments)(body)
                over = meter.page(len(page.items)) or over
                if page.next_path:
                    following.append(page.next_path)

        await asyncio.gather(*(work() for _ in range(_CONNECTIONS)))


def main() -> None:
    """The side's process."""
    run = Run.from_json(sys.argv[1])
    meter = Meter(run)
    asyncio.run(crawl(run, meter))
    print(meter.report())


if __name__ == "__main__":
    main()
