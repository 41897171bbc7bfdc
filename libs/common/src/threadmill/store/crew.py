"""Who works: the workers of each stage, the item writers and the dispatchers, and what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis
from redis.exceptions import ResponseError

from threadmill.model.keys import GROUP, Lane
from threadmill.store.calls import is_no_group
from threadmill.store.find import holder_of


@dataclass(frozen=True, slots=True)
class Hand:
    """One process, as one lane knows it. Times are ms since 1970 on Redis's clock; 0: not known."""

    id: str
    since_ms: int = 0
    """When it came."""
    seen_ms: int = 0
    """Its last sign of life."""
    leases: int = 0
    """Pages it has leased."""
    ends_ms: int = 0
    """When the first of its leases ends, if it does not renew it."""
    entries: int = 0
    """Tasks it has read and not admitted, or pages whose items it has read and not stored."""
    group: str = ""
    """The item stream's consumer group it reads for."""


def workers(client: redis.Redis, lane: Lane, stage: str) -> Iterator[Hand]:
    """The workers of a stage, also those that are gone and left leases behind."""
    keys = lane.stage(stage)
    seen = {_text(worker): int(at) for worker, at in _rows(client.zrange(keys.workers, 0, -1, withscores=True))}
    reports: Any = client.hgetall(keys.reports)
    ends: dict[str, list[int]] = defaultdict(list)
    for lease, expiry in _rows(client.zrange(keys.leases, 0, -1, withscores=True)):
        ends[holder_of(_text(lease))].append(int(expiry))
    read: dict[str, int] = defaultdict(int)
    for stream in (keys.express, keys.tasks):
        for consumer in _consumers(client, stream, GROUP):
            read[_text(consumer["name"])] += int(consumer["pending"])
    for worker in sorted({*seen, *ends, *(name for name, pending in read.items() if pending)}):
        yield Hand(
            worker,
            int(reports.get(f"{worker}:since".encode(), 0)),
            seen.get(worker, 0),
            len(ends[worker]),
            min(ends[worker], default=0),
            read[worker],
        )


def item_writers(client: redis.Redis, lane: Lane, now_ms: int) -> Iterator[Hand]:
    """The consumers of the lane's item stream. When they came is not known."""
    for group in _groups(client, lane.items):
        for consumer in _consumers(client, lane.items, _text(group["name"])):
            seen, entries = now_ms - int(consumer["idle"]), int(consumer["pending"])
            yield Hand(_text(consumer["name"]), seen_ms=seen, entries=entries, group=_text(group["name"]))


def dispatchers(client: redis.Redis, lane: Lane) -> Iterator[Hand]:
    """The dispatchers that look after the lane's boards."""
    for name, at in _rows(client.zrange(lane.dispatchers, 0, -1, withscores=True)):
        yield Hand(_text(name), seen_ms=int(at))


def _groups(client: redis.Redis, stream: str) -> list[dict[str, Any]]:
    try:
        return _rows(client.xinfo_groups(stream))
    except ResponseError as error:
        if "no such key" not in str(error):
            raise
        return []


def _consumers(client: redis.Redis, stream: str, group: str) -> list[dict[str, Any]]:
    try:
        return _rows(client.xinfo_consumers(stream, group))
    except ResponseError as error:
        if "no such key" not in str(error) and not is_no_group(error):
            raise
        return []


def _rows(reply: Any) -> list[Any]:
    return list(reply)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
