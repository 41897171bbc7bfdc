"""Reading the task streams: what waits, what was delivered and not admitted, and groups that must exist."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
    """The two task streams of a stage in one lane, express first, as one consumer reads them."""

    def __init__(self, client: redis.Redis, keys: StageKeys, consumer: str) -> None:
        self._client = client
        self._keys = keys
        self._consumer = consumer

    def ensure_groups(self) -> None:
        for stream in self.names:
            ensure_group(self._client, stream)

    def reading(self, count: int, *, tasks: bool = True, start: str = NEW) -> Command[list[Entry]]:
        """Take up to `count` entries of each stream, express ones first; `tasks=False` reads express only.

        `start=PENDING` gives again what was delivered to this consumer and not admitted: after a connection error the
        lost reply may have carried some.
        """
        streams = self.names if tasks else self.names[:1]
        group = ("GROUP", GROUP, self._consumer)
        return Command(
            ("XREADGROUP", *group, "COUNT", count, "STREAMS", *streams, *[start for _ in streams]),
            self._entries,
        )

    def read(self, count: int, *, start: str = NEW) -> list[Entry]:
        """The same, now; groups that are gone are made again."""
        try:
            return run(self._client, self.reading(count, start=start))
        except ResponseError as error:
            if not is_no_group(error):
                raise
            logger.warning(GROUP_GONE)
            self.ensure_groups()
            return []

    @property
    def names(self) -> tuple[str, str]:
        """The streams' keys, express first."""
        return (self._keys.express, self._keys.tasks)

    def claim(self, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over entries that other consumers were given `idle_ms` ago and never admitted."""
        entries: list[Entry] = []
        for stream in self.names:
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


def wait_for_tasks(
    client: redis.Redis, lanes: Sequence[TaskStreams], consumer: str, count: int, block_ms: int
) -> list[list[Entry]]:
    """Up to `count` new entries of each stream of several lanes, by lane, as soon as there are any: one blocking read.

    Answers nothing after `block_ms`. Groups that are gone are made again.
    """
    names = [name for lane in lanes for name in lane.names]
    command = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "BLOCK", block_ms, "STREAMS")
    try:
        found = dict(run(client, Command((*command, *names, *[NEW for _ in names]), lambda reply: reply or ())))
    except ResponseError as error:
        if not is_no_group(error):
            raise
        logger.warning(GROUP_GONE)
        for lane in lanes:
            lane.ensure_groups()
        return [[] for _ in lanes]
    return [
        [_entry(item, express=name == lane.names[0]) for name in lane.names for item in found.get(name.encode(), ())]
        for lane in lanes
    ]


def _entry(item: Any, *, express: bool) -> Entry:
    entry_id, fields = item
    if isinstance(fields, list):
        fields = dict(zip(fields[::2], fields[1::2], strict=True))
    return Entry(entry_id, express, fields or {})
