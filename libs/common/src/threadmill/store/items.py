"""The item streams: what was collected, read by one consumer group per store and removed when all have it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError

from threadmill.model.errors import StoreUnavailable
from threadmill.model.keys import Lane
from threadmill.store.calls import Arg, Call, Command, is_no_group, run_all
from threadmill.store.scripts import Script, compose
from threadmill.store.streams import GROUP_GONE, NEW, ensure_group

logger = logging.getLogger(__name__)

SILENCE_MS = 3_600_000
"""A consumer that has nothing and asked for nothing for this long is gone: its record is removed."""
_CLAIM = compose("claim_items")
_SETTLE = compose("settle")
_LEAVE = compose("leave_items")


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """The items of one page: `body` is a JSON array, `at_ms` the commit's time on Redis's clock."""

    lane: Lane
    id: bytes
    stage: str
    body: bytes

    @property
    def at_ms(self) -> int:
        return int(self.id.split(b"-")[0])

    @property
    def seq(self) -> int:
        """Its place among the lane's entries of the same millisecond."""
        return int(self.id.split(b"-")[1])


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item no store could take, or a whole entry that could not be read."""

    entry: ItemEntry
    error: str
    body: bytes


class ItemStreams:
    """The item streams of some lanes, as one consumer of one group reads them.

    Every method raises `StoreUnavailable` while Redis cannot serve it. What was delivered by a reply that got lost is
    still pending for this consumer: after every `StoreUnavailable`, read with `start=PENDING` until there is no more.
    """

    def __init__(self, client: redis.Redis, lanes: Sequence[Lane], group: str, consumer: str) -> None:
        """The lanes are read by one command, so `client` must be one server (or the lanes of one slot)."""
        self._client = client
        self._lanes = {lane.items.encode(): lane for lane in lanes}
        self._group = group
        self._consumer = consumer

    def ensure_groups(self) -> None:
        """Make the groups that are not there, each at its stream's beginning."""
        with _answering():
            for lane in self._lanes.values():
                ensure_group(self._client, lane.items, self._group)

    def read(self, count: int, *, block_ms: int | None = None, start: str = NEW) -> list[ItemEntry]:
        """Some `count` pages' items, shared fairly among the lanes, at least one of each.

        `start=PENDING` (of `streams`) gives those again that were delivered to this consumer and not settled.
        """
        share = max(1, count // len(self._lanes))
        while True:
            entries, gone = self._entries(self._delivered(share, block_ms, start))
            if gone:
                self._forget(gone)
            # What was deleted while it was pending must not look as if there were no more.
            if entries or not gone:
                return entries

    def claim(self, idle_ms: int) -> int:
        """Take over entries that any consumer took `idle_ms` ago and never settled; answers how many.

        They are read with `start=PENDING`. A live consumer's entries may be among them: both write them, which changes
        nothing, and the one that settles second settles none.
        """
        return self._in_each_lane(_CLAIM, (self._group, self._consumer, idle_ms))

    def settle(self, entries: Sequence[tuple[ItemEntry, int]], rejected: Sequence[Rejected] = ()) -> int:
        """Say that the store has these entries, each with its number of items; rejected items, of these
        entries, are parked.

        Answers how many entries were settled now and not before. Safe to repeat.
        """
        by_lane: dict[str, tuple[Lane, list[Arg], list[Arg]]] = {}
        for entry, items in entries:
            _, mine, _ = by_lane.setdefault(entry.lane.items, (entry.lane, [], []))
            mine += (entry.id, items)
        for item in rejected:
            by_lane[item.entry.lane.items][2].extend((item.entry.id, item.error, item.body))
        calls = [
            Call(
                _SETTLE,
                (lane.items, lane.items_stats, lane.items_dead),
                (self._group, len(mine) // 2, *mine, *parked),
                int,
            )
            for lane, mine, parked in by_lane.values()
        ]
        with _answering():
            return sum(run_all(self._client, calls))

    def leave(self) -> None:
        """Remove this consumer, unless entries are still pending for it."""
        self._in_each_lane(_LEAVE, (self._group, self._consumer, SILENCE_MS))

    def forget_silent(self) -> None:
        """Remove the records of consumers that ended long ago and left nothing pending."""
        self._in_each_lane(_LEAVE, (self._group, "", SILENCE_MS))

    def _in_each_lane(self, script: Script, args: tuple[Arg, ...]) -> int:
        with _answering():
            return sum(run_all(self._client, [Call(script, (lane.items,), args, int) for lane in self._lanes.values()]))

    def _delivered(self, count: int, block_ms: int | None, start: str) -> Any:
        streams: dict[Any, Any] = dict.fromkeys(self._lanes, start)
        with _answering():
            try:
                return self._client.xreadgroup(self._group, self._consumer, streams, count=count, block=block_ms) or ()
            except ResponseError as error:
                if not is_no_group(error):
                    raise
                logger.warning(GROUP_GONE)
                self.ensure_groups()
                return ()

    def _entries(self, reply: Any) -> tuple[list[ItemEntry], list[tuple[bytes, bytes]]]:
        """The entries of a reply, and (stream, id) of those that were deleted while they were pending."""
        entries, gone = [], []
        for key, items in reply:
            for entry_id, fields in items:
                if fields:
                    stage = fields.get(b"s", b"").decode("utf-8", "replace")
                    # Without items it is nothing we wrote; it will be parked, with all it has.
                    body = fields[b"i"] if b"i" in fields else b" ".join(map(b"=".join, fields.items()))
                    entries.append(ItemEntry(self._lanes[key], entry_id, stage, body))
                else:
                    gone.append((key, entry_id))
        return entries, gone

    def _forget(self, gone: Sequence[tuple[bytes, bytes]]) -> None:
        """Entries that were deleted (by a trim from outside) would stay pending for ever."""
        with _answering():
            run_all(self._client, [Command(("XACK", key, self._group, entry_id), int) for key, entry_id in gone])


@contextmanager
def _answering() -> Iterator[None]:
    # Also what Redis says while it loads, fails over or refuses a password that was changed: all of it passes.
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"Redis cannot serve the item streams: {error}") from error
