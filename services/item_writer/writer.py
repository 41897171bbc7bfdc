"""The writer: takes batches from the item streams, has them stored, and only then settles them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import structlog

from item_writer.batch import read_batch, rejections
from item_writer.stores import DatabaseUnavailable, Store
from threadmill.model.errors import StoreUnavailable
from threadmill.ops.stop import Stop
from threadmill.store.items import ItemEntry, ItemStreams, Rejected
from threadmill.store.streams import NEW, PENDING

logger = structlog.get_logger()
T = TypeVar("T")

PAGES = 300
"""Pages of a batch."""
BLOCK_MS = 1_000
"""Longest wait for new pages; a signal to stop is heard after it."""
CLAIM_IDLE_MS = 5_000
"""A batch takes well under a second: what is not settled after this is taken over. Being wrong is harmless."""
CLAIM_EVERY_S = 5.0
PAUSES_S = (0.1, 5.0)
"""First and longest pause before something is tried again; it doubles."""


class StoppedError(Exception):
    """The service was told to stop while it waited for Redis or the database."""


class Writer:
    """Entries are settled after they were stored and never before, so a writer may die anywhere: what it had is taken
    over and stored again, which changes nothing."""

    def __init__(self, streams: ItemStreams, store: Store, stop: Stop) -> None:
        self._streams = streams
        self._store = store
        self._stop = stop
        self._claim_at = time.monotonic()
        self._owing = True
        """Entries may be pending for this consumer that it does not know of."""

    def run(self) -> int:
        """Write until told to stop; answers how many items were written or parked. Raises `ConfigError` only."""
        written = 0
        try:
            self._until_done(self._store.open)
            self._until_done(self._streams.ensure_groups)
            self._until_done(self._streams.forget_silent)
            while not self._stop.requested:
                if entries := self._until_done(self._take):
                    written += self._write(entries)
        except StoppedError:
            logger.warning("stopped while waiting; what was taken is kept for the next writer")
        else:
            # What is still pending is another's to take over; a record that stays behind does no harm.
            with suppress(StoreUnavailable):
                self._streams.leave()
        finally:
            self._store.close()
        return written

    def _take(self) -> list[ItemEntry]:
        if (now := time.monotonic()) >= self._claim_at:
            if taken := self._streams.claim(CLAIM_IDLE_MS):
                self._owing = True
                logger.info("took over pages that were never settled", pages=taken)
            self._claim_at = now + CLAIM_EVERY_S
        if self._owing:
            if entries := self._streams.read(PAGES, start=PENDING):
                return entries
            self._owing = False
        return self._streams.read(PAGES, block_ms=BLOCK_MS, start=NEW)

    def _write(self, entries: list[ItemEntry]) -> int:
        """Store the entries' items, then settle them; answers how many items that were."""
        started = time.monotonic()
        batch = read_batch(entries)
        refused = self._until_done(lambda: self._store.write(batch.items)) if batch.items else []
        of_entry: dict[ItemEntry, list[tuple[int, str]]] = {}
        for one, error in refused:
            of_entry.setdefault(one.entry, []).append((one.position, error))
        rejected = batch.rejected + [item for entry, items in of_entry.items() for item in rejections(entry, items)]
        self._tell(rejected)
        self._until_done(lambda: self._streams.settle(batch.entries, rejected))
        items = sum(count for _, count in batch.entries)
        logger.debug("wrote", pages=len(entries), items=items, ms=round((time.monotonic() - started) * 1000))
        return items

    def _tell(self, rejected: list[Rejected]) -> None:
        if rejected:
            first = rejected[0]
            logger.warning("parking items that cannot be stored", items=len(rejected), error=first.error[:200])

    def _until_done(self, act: Callable[[], T]) -> T:
        """What `act` answers, tried again while Redis or the database cannot serve it; raises `StoppedError`."""
        pause, longest = PAUSES_S
        while True:
            try:
                return act()
            except (StoreUnavailable, DatabaseUnavailable) as error:
                # The reply that was lost may have carried entries.
                self._owing = True
                logger.warning(f"{error}; trying again", pause_s=pause)
            if self._stop.wait(pause):
                raise StoppedError
            pause = min(2 * pause, longest)
