"""The worker's counters on their way to Redis: they travel with commits, at most once a second."""

from __future__ import annotations

import asyncio
import itertools

from threadmill.crawl.exchange import Errand
from threadmill.crawl.stats import FleetStats
from threadmill.store.stage import StageStore

REPORT_S = 1.0
OURS = frozenset(
    {
        *("accepted", "done", "filtered", "streamed", "submitted", "items", "gone", "ignored"),
        *("retried", "fenced", "reclaimed", "replayed", "dropped", "letters", "sequence"),
    }
)
"""Counters of the books, in the same hash: a spider's own of that name are kept apart."""


class Counters:
    """A passenger of the exchange. Each report has a number, so one that travels twice counts once."""

    def __init__(self, stats: FleetStats, store: StageStore, worker: str) -> None:
        self._stats = stats
        self._store = store
        self._worker = worker
        self._numbers = itertools.count(1)
        self._due = 0.0
        self._loop = asyncio.get_running_loop()

    def finish(self) -> None:
        """What is left travels with the last trip."""
        self._due = 0.0

    def errands(self) -> list[Errand]:
        now = self._loop.time()
        if now < self._due or not (counts := self._stats.take()):
            return []
        self._due = now + REPORT_S
        counts = {f"spider/{name}" if name in OURS else name: by for name, by in counts.items()}
        return [Errand(self._store.report(self._worker, next(self._numbers), counts), lambda _: None)]

    def starving(self) -> bool:
        return True

    def connection_failed(self) -> None:
        """Reports are safe to send again."""
