"""Scrapy's stats, kept in the process and added up in Redis: the fleet's totals, at no round trip of their own."""

from __future__ import annotations

from typing import Any

from scrapy.statscollectors import MemoryStatsCollector


class FleetStats(MemoryStatsCollector):
    """Counters that grew since the last report travel with the next commit (`take`), under Scrapy's own names.

    Only whole numbers that were incremented travel; times, maxima and texts stay local.
    """

    # Scrapy 2.19 wraps every method access to warn about a deprecated argument; counting is too frequent for that.
    __getattribute__ = object.__getattribute__

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._grown: dict[str, int] = {}

    def inc_value(self, key: str, count: int = 1, start: int = 0, spider: Any = None) -> None:
        stats = self._stats
        stats[key] = stats.get(key, start) + count
        if type(count) is int:
            self._grown[key] = self._grown.get(key, 0) + count

    def take(self) -> dict[str, int]:
        """What was counted since the last call."""
        grown, self._grown = self._grown, {}
        return grown
