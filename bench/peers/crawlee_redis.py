"""crawlee-python with its Redis storage: request queue and dataset in Redis, HttpCrawler, the same parsing.

The choices, each the one that shows it at its best while it still does its job:

- `HttpCrawler` with the default client (impit) hands the body on unparsed; its other crawlers parse HTML, of
  which there is none.
- Concurrency is fixed at 16, as on every side: its autoscaling starts at 10 and slows down when the machine is busy.
- No session pool and no retry of blocked pages: they serve against sites that block crawlers, and cost time.
- `push_data` with all items of a page at once: one dataset entry for each comment, one call a page.
  `--one-by-one` calls it for each item; its commit then waits for Redis once an item.
- Follow-ups go to the front of the queue, as its RequestQueue documents for depth-first crawls: in the default
  order all posts would come before any comment page, and other pages would be measured than on the other sides.
- Statistics and status messages are logged at INFO, which is off, as on every side.

Its Redis storage needs Redis >= 7 with the JSON commands (`bench/json_redis.py`).
"""

import argparse
import asyncio
import logging
import warnings
from collections.abc import Callable
from datetime import timedelta

from crawlee import ConcurrencySettings, Request, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import RedisStorageClient

from bench.callbacks import Parsed, parse_comments, parse_post, post_path
from bench.meter import Meter
from bench.run import Run

_CONCURRENCY = 16
_COMMENTS = "comments"  # a request's label: which callback reads its page
_BATCH = 1000


async def crawl(run: Run, meter: Meter, *, one_by_one: bool) -> None:
    """Crawls until the meter has seen enough."""
    # What was pushed before the clock started is not left over from a run before.
    service_locator.set_configuration(Configuration(purge_on_start=False))
    await _push_tasks(run)
    crawler = HttpCrawler(
        storage_client=RedisStorageClient(connection_string=run.redis_url),
        http_client=ImpitHttpClient(persist_cookies_per_session=False),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=_CONCURRENCY, max_concurrency=_CONCURRENCY, desired_concurrency=_CONCURRENCY
        ),
        use_session_pool=False,
        retry_on_blocked=False,
        configure_logging=False,
        status_message_logging_interval=timedelta(hours=1),
    )

    async def read(context: HttpCrawlingContext, parse: Callable[[bytes], Parsed]) -> None:
        page = parse(await context.http_response.read())
        over = meter.page(len(page.items))
        if one_by_one:
            for item in page.items:
                await context.push_data(item)
        elif page.items:
            await context.push_data(page.items)
        if over:
            crawler.stop("measured")
        elif page.next_path:
            await crawler.add_requests([_request(run, page.next_path, _COMMENTS)], forefront=True)

    @crawler.router.default_handler
    async def read_post(context: HttpCrawlingContext) -> None:
        await read(context, parse_post)

    @crawler.router.handler(_COMMENTS)
    async def read_comments(context: HttpCrawlingContext) -> None:
        await read(context, parse_comments)

    await crawler.run()


async def _push_tasks(run: Run) -> None:
    """Fills its request queue through the near Redis, before the clock starts."""
    near = RedisStorageClient(connection_string=run.near_redis_url)
    queue = await near.create_rq_client(id=None, name=None)
    posts = [_request(run, post_path(post), None) for post in run.post_ids()]
    for at in range(0, len(posts), _BATCH):
        await queue.add_batch_of_requests(posts[at : at + _BATCH])


def _request(run: Run, path: str, label: str | None) -> Request:
    return Request.from_url(run.site_url + path, label=label)


def main() -> None:
    """The side's process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Run.from_json)
    parser.add_argument("--one-by-one", action="store_true", help="one call for each item")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    warnings.filterwarnings("ignore", message="RedisStorageClient is experimental")
    meter = Meter(options.run)
    asyncio.run(crawl(options.run, meter, one_by_one=options.one_by_one))
    print(meter.report())


if __name__ == "__main__":
    main()
