"""Reading the task streams: what waits, what was delivered and not admitted, and groups that must exist."""

from __future__ import annotations

import logging
from typing import Any

import redis
from redis.exceptions import ResponseError

from threadmill.model.keys import GROUP, StageKeys
from threadmill.store.calls import Call, Command, is_no_group, run
from threadmill.store.scripts import compose
from threadmill.store.work import Entry

NEW, PENDING = ">", "0"
GROUP_GONE = "a consumer group was gone (was Redis flushed?); it is made again at the stream's beginning"

logger = logging.getLogger(__name__)


_ENSURE_GROUP = compose("ensure_group")


def ensure_group(client: redis.Redis, stream: str, group: str = GROUP) -> None:
    """Make the group if it is not there, at the stream's beginning; also in a Redis that is full."""
    run(client, Call(_ENSURE_GROUP, (stream,), (group,), int))


class TaskStreams:
    """The two task streams of a stage, express first, as one consumer reads them."""

    def __init__(self, client: redis.Redis, keys: StageKeys, consumer: str) -> None:
        self._client = client
        self._keys = keys
        self._consumer = consumer

    def ensure_groups(self) -> None:
        ensure_group(self._client, self._keys.express)
        ensure_group(self._client, self._keys.tasks)

    def reading(
        self, count: int, *, block_ms: int | None = None, tasks: bool = True, start: str = NEW
    ) -> Command[list[Entry]]:
        """Take up to `count` entries of each stream, express ones first; `tasks=False` reads express only.

        `start=PENDING` gives again what was delivered to this consumer and not admitted: after a connection error the
        lost reply may have carried some. Blocks up to `block_ms` if given.
        """
        streams = [self._keys.express, self._keys.tasks] if tasks else [self._keys.express]
        block = () if block_ms is None else ("BLOCK", block_ms)
        group = ("GROUP", GROUP, self._consumer)
        return Command(
            ("XREADGROUP", *group, "COUNT", count, *block, "STREAMS", *streams, *[start for _ in streams]),
            self._entries,
        )

    def read(self, count: int, *, block_ms: int | None = None, start: str = NEW) -> list[Entry]:
        """The same, now; groups that are gone are made again."""
        try:
            return run(self._client, self.reading(count, block_ms=block_ms, start=start))
        except ResponseError as error:
            if not is_no_group(error):
                raise
            logger.warning(GROUP_GONE)
            self.ensure_groups()
            return []

    def claim(self, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over entries that other consumers were given `idle_ms` ago and never admitted."""
        entries: list[Entry] = []
        for stream in (self._keys.express, self._keys.tasks):
            try:
                reply: Any = self._client.execute_command(  # type: ignore[no-untyped-call]
                    "XAUTOCLAIM", stream, GROUP, self._consumer, idle_ms, "0-0", "COUNT", count
                )
            except ResponseError as error:
                if not is_no_group(error):
                    raise
                logger.warning(GROUP_GONE)
                ensure_group(self._client, stream)
                continue
            # Redis 6.2 answers two elements, later ones three; entries deleted meanwhile come as nil in 6.2.
            express = stream == self._keys.express
            entries += [_entry(item, express=express) for item in reply[1] if item and item[1] is not None]
        return entries

    def _entries(self, reply: Any) -> list[Entry]:
        return [
            _entry(item, express=stream.decode() == self._keys.express)
            for stream, items in reply or ()
            for item in items
        ]


def _entry(item: Any, *, express: bool) -> Entry:
    entry_id, fields = item
    if isinstance(fields, list):
        fields = dict(zip(fields[::2], fields[1::2], strict=True))
    return Entry(entry_id, express, fields or {})
