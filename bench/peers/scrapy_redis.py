"""scrapy-redis as its README sets it up: RedisSpider, its scheduler, dupefilter and RedisPipeline.

The choices, each the one that shows it at its best while it still does its job:

- Tasks are pushed to its start list as the JSON its README asks for; plain URLs would log a warning each.
- Queue class, serializer (pickle) and batch size (CONCURRENT_REQUESTS) are its defaults. Taking 1,000 tasks at
  a time (`--batch`) was measured too: a few percent slower with Redis near, under a tenth faster at 2 ms.
- Items go to Redis, because sharing them is what it is used for; the pipeline does that from threads, one
  call an item.
- `--stats` adds its RedisStatsCollector, which some deployments rely on for their totals.
"""

import argparse
import json
from typing import Any

from redis import Redis
from scrapy_redis.spiders import RedisSpider

from bench.callbacks import post_path
from bench.peers.forum import ForumSpider, crawl
from bench.run import Run

ITEMS_KEY = f"{ForumSpider.name}:items"
_START_KEY = f"{ForumSpider.name}:start_urls"
SETTINGS: dict[str, Any] = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 300},
}


class SharedSpider(RedisSpider, ForumSpider):  # type: ignore[misc]  # scrapy-redis has no types
    """Takes its posts from the start list whenever it is idle."""

    redis_key = _START_KEY


def push_tasks(run: Run) -> None:
    """Fills the start list, before the clock starts."""
    with Redis.from_url(run.near_redis_url) as redis:
        redis.rpush(_START_KEY, *(json.dumps({"url": run.site_url + post_path(post)}) for post in run.post_ids()))


def main() -> None:
    """The side's process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Run.from_json)
    parser.add_argument("--stats", action="store_true", help="counters in Redis too")
    parser.add_argument("--batch", type=int, help="tasks taken at a time; its default is CONCURRENT_REQUESTS")
    options = parser.parse_args()
    settings = {**SETTINGS, "REDIS_URL": options.run.redis_url}
    if options.stats:
        settings["STATS_CLASS"] = "scrapy_redis.stats.RedisStatsCollector"
    SharedSpider.redis_batch_size = options.batch
    push_tasks(options.run)
    crawl(SharedSpider, options.run, settings)


if __name__ == "__main__":
    main()
