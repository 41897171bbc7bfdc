"""The item stream: what was collected, read by one consumer group per store and removed when all have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import ResponseError

from threadmill.model.keys import Lane
from threadmill.store.calls import Arg, Call, is_no_group, run
from threadmill.store.scripts import compose
from threadmill.store.streams import NEW, ensure_group


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """The items of one page: `body` is a JSON array, `at_ms` the commit's time on Redis's clock."""

    id: bytes
    stage: str
    body: bytes

    @property
    def at_ms(self) -> int:
        return int(self.id.split(b"-")[0])


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item no store could take."""

    entry_id: bytes
    error: str
    body: bytes


class ItemStream:
    """The item stream of a lane, as one consumer of one group reads it."""

    def __init__(self, client: redis.Redis, lane: Lane, group: str, consumer: str) -> None:
        self._client = client
        self._lane = lane
        self._group = group
        self._consumer = consumer
        self._settle = compose("settle")

    def ensure_group(self) -> None:
        ensure_group(self._client, self._lane.items, self._group)

    def read(self, count: int, *, block_ms: int | None = None, start: str = NEW) -> list[ItemEntry]:
        """Up to `count` pages' items; `start="0"` gives those again that were delivered and not settled."""
        streams: dict[Any, Any] = {self._lane.items: start}
        try:
            reply: Any = self._client.xreadgroup(self._group, self._consumer, streams, count=count, block=block_ms)
        except ResponseError as error:
            if not is_no_group(error):
                raise
            self.ensure_group()
            return []
        return [_entry(item) for _, items in reply or () for item in items]

    def claim(self, idle_ms: int, count: int = 100) -> list[ItemEntry]:
        """Take over pages' items that another consumer took `idle_ms` ago and never settled."""
        try:
            reply: Any = self._client.execute_command(  # type: ignore[no-untyped-call]
                "XAUTOCLAIM", self._lane.items, self._group, self._consumer, idle_ms, "0-0", "COUNT", count
            )
        except ResponseError as error:
            if not is_no_group(error):
                raise
            self.ensure_group()
            return []
        return [_entry(item) for item in reply[1] if item and item[1] is not None]

    def settle(self, entries: Sequence[tuple[bytes, int]], rejected: Sequence[Rejected] = ()) -> int:
        """Say that the store has these entries ((id, number of items) each); rejected items are parked."""
        args: list[Arg] = [self._group, len(entries)]
        for entry_id, items in entries:
            args += [entry_id, items]
        for item in rejected:
            args += [item.entry_id, item.error, item.body]
        keys = (self._lane.items, self._lane.items_stats, self._lane.items_dead)
        return run(self._client, Call(self._settle, keys, tuple(args), int))

    def leave(self) -> None:
        """Remove this consumer, unless entries are still pending for it."""
        if not self._client.xpending_range(self._lane.items, self._group, "-", "+", 1, self._consumer):
            self._client.xgroup_delconsumer(self._lane.items, self._group, self._consumer)


def _entry(item: Any) -> ItemEntry:
    entry_id, fields = item
    if isinstance(fields, list):
        fields = dict(zip(fields[::2], fields[1::2], strict=True))
    return ItemEntry(entry_id, fields.get(b"s", b"").decode("utf-8", "replace"), fields.get(b"i", b""))
