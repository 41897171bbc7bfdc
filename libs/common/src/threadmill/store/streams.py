"""Reading the task streams: what waits, what was delivered and not admitted, and groups that must exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import redis
from redis.exceptions import ResponseError

from threadmill.model.keys import GROUP, StageKeys
from threadmill.store.calls import is_no_group
from threadmill.store.work import Entry

NEW, PENDING = ">", "0"


def ensure_group(client: redis.Redis, stream: str, group: str = GROUP) -> None:
    """Create the group, at the stream's beginning so that nothing submitted before is passed over."""
    try:
        client.xgroup_create(stream, group, id="0", mkstream=True)
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise


class TaskStreams:
    """The two task streams of a stage, express first, as one consumer reads them."""

    def __init__(self, client: redis.Redis, keys: StageKeys, consumer: str) -> None:
        self._client = client
        self._keys = keys
        self._consumer = consumer

    def ensure_groups(self) -> None:
        ensure_group(self._client, self._keys.express)
        ensure_group(self._client, self._keys.tasks)

    def read(self, count: int, *, block_ms: int | None = None, tasks: bool = True, start: str = NEW) -> list[Entry]:
        """Take up to `count` entries of each stream, express ones first; `tasks=False` reads express only.

        `start=PENDING` gives again what was delivered to this consumer and not admitted: after a connection error the
        lost reply may have carried some. Blocks up to `block_ms` if given.
        """
        streams = {self._keys.express: start}
        if tasks:
            streams[self._keys.tasks] = start
        try:
            reply = self._client.xreadgroup(GROUP, self._consumer, streams, count=count, block=block_ms)
        except ResponseError as error:
            if not is_no_group(error):
                raise
            self.ensure_groups()
            return []
        return list(self._entries(reply))

    def claim(self, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over entries that other consumers were given `idle_ms` ago and never admitted."""
        entries: list[Entry] = []
        for stream in (self._keys.express, self._keys.tasks):
            try:
                reply: Any = self._client.execute_command(
                    "XAUTOCLAIM", stream, GROUP, self._consumer, idle_ms, "0-0", "COUNT", count
                )
            except ResponseError as error:
                if not is_no_group(error):
                    raise
                ensure_group(self._client, stream)
                continue
            # Redis 6.2 answers two elements, later ones three; entries deleted meanwhile come as nil in 6.2.
            for item in reply[1]:
                if item and item[1] is not None:
                    entries.append(_entry(item, express=stream == self._keys.express))
        return entries

    def _entries(self, reply: Any) -> Iterator[Entry]:
        pairs = reply.items() if isinstance(reply, Mapping) else reply or ()
        for stream, items in pairs:
            express = stream.decode() == self._keys.express
            for item in items:
                if isinstance(item, list) and item and isinstance(item[0], list | tuple):
                    for inner in item:  # RESP3 nests the entries once more
                        yield _entry(inner, express=express)
                else:
                    yield _entry(item, express=express)


def _entry(item: Any, *, express: bool) -> Entry:
    entry_id, fields = item
    if isinstance(fields, list):
        fields = dict(zip(fields[::2], fields[1::2], strict=True))
    return Entry(entry_id, express, fields or {})
