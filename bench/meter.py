"""The stopwatch inside a worker: every side counts its pages here, in its callbacks."""

import json
import resource
import sys
import time
from dataclasses import dataclass

from bench.redis_usage import RedisUsage, RedisUsageReader
from bench.run import Run


@dataclass(frozen=True, slots=True)
class _Reading:
    pages: int
    items: int
    wall_s: float
    cpu_s: float
    redis: RedisUsage


class Meter:
    """Times the pages after the warm-up, from callback to callback, and reads Redis's counters at both ends.

    As many pages are under way at the end as at the beginning, so the steady rate is what is left.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._redis = RedisUsageReader(run.near_redis_url)
        self._pages = 0
        self._items = 0
        self._warm_by = 0.0
        self._begin: _Reading | None = None
        self._end: _Reading | None = None

    def page(self, items: int) -> bool:
        """Counts a parsed page and its items; True once the run is measured and the side should stop."""
        self._pages += 1
        self._items += items
        if self._end is not None:
            return True
        now = time.perf_counter()
        if self._begin is None:
            self._warm_by = self._warm_by or now + self._run.warmup_seconds
            if self._pages >= self._run.warmup_pages or now >= self._warm_by:
                redis = self._redis.read()
                self._begin = self._reading(redis)
            return False
        if not self._run.is_over(self._pages - self._begin.pages, now - self._begin.wall_s):
            return False
        # The clocks stop before the counters are read, which takes time.
        self._end = self._reading(self._begin.redis)
        self._end = _Reading(self._pages, self._items, self._end.wall_s, self._end.cpu_s, self._redis.read())
        return True

    def _reading(self, redis: RedisUsage) -> _Reading:
        return _Reading(self._pages, self._items, time.perf_counter(), time.process_time(), redis)

    def report(self) -> str:
        """The run as one JSON line: seconds, CPU per page of the worker in ms and of Redis in µs, memory in MiB."""
        if self._begin is None or self._end is None:
            raise RuntimeError(f"The crawl ended after {self._pages} pages, before it was measured")
        pages = self._end.pages - self._begin.pages
        seconds = self._end.wall_s - self._begin.wall_s
        cpu_s = self._end.cpu_s - self._begin.cpu_s
        redis = self._end.redis - self._begin.redis
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
        peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return json.dumps(
            {
                "pages": pages,
                "seconds": round(seconds, 3),
                "pages_per_s": round(pages / seconds, 2),
                "cpu_seconds": round(cpu_s, 3),
                "cpu_ms_per_page": round(cpu_s / pages * 1000, 3),
                "items": self._end.items - self._begin.items,
                "items_yielded": self._items,
                "peak_rss_mb": round(peak_rss / 2**20, 1),
                "redis_calls_per_page": round(redis.calls / pages, 3),
                "redis_commands_per_page": round(redis.commands / pages, 3),
                "redis_cpu_seconds": round(redis.cpu_us / 1e6, 3),
                "redis_cpu_us_per_page": round(redis.cpu_us / pages, 1),
            }
        )
