"""A stage's waiting work, read in portions from its beginning, without taking it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import redis

from threadmill.model.keys import GROUP, Lane
from threadmill.store.calls import is_no_group
from threadmill.store.find import holder_of
from threadmill.store.letters import DeadLetter
from threadmill.store.pieces import QUEUES, STREAMS, Piece, Place, of_entry, of_letter, of_member
from threadmill.store.work import Entry

PORTION = 500
"""Pieces of one read or write: a few ms of Redis's time at most."""

Portions = Iterator[list[Piece]]


def portions(client: redis.Redis, lane: Lane, stage: str, place: Place, size: int = PORTION) -> Portions:
    """The pieces of a place, the next to come first. What lies there all the while is met exactly once."""
    if place in STREAMS:
        return _entries(client, lane, stage, place, size)
    if place in QUEUES:
        return _members(client, lane, stage, place, size)
    return _leased(client, lane, stage, size) if place is Place.LEASED else _letters(client, lane, stage, size)


def key_of(lane: Lane, stage: str, place: Place) -> str:
    """The Redis key of a place."""
    keys = lane.stage(stage)
    names = {
        Place.EXPRESS: keys.express,
        Place.TASKS: keys.tasks,
        Place.REQUESTS: keys.requests,
        Place.DELAYED: keys.delayed,
        Place.LEASED: keys.leases,
        Place.DEAD: keys.dead_index,
    }
    return names[place]


def held(client: redis.Redis, lane: Lane, stage: str, place: Place) -> int:
    """How many pieces lie there."""
    name = key_of(lane, stage, place)
    count: Any = client.xlen(name) if place in STREAMS else client.zcard(name)
    return int(count)


def _entries(client: redis.Redis, lane: Lane, stage: str, place: Place, size: int) -> Portions:
    name, at, before = key_of(lane, stage, place), "-", itertools.count()
    readers = dict(_readers(client, name))
    while reply := _listed(client.xrange(name, at, "+", count=size)):
        # A portion holds few of those that workers have read: they are the stream's first.
        yield [
            of_entry(
                Entry(entry_id, place is Place.EXPRESS, fields),
                lane,
                stage,
                before=next(before),
                holder=readers.get(entry_id, ""),
            )
            for entry_id, fields in reply
        ]
        at = f"({reply[-1][0].decode()}"


def _readers(client: redis.Redis, stream: str) -> Iterator[tuple[bytes, str]]:
    """The entries that workers have read and not admitted, each with the worker."""
    try:
        for entry in _listed(client.xpending_range(stream, GROUP, "-", "+", 10_000)):
            yield entry["message_id"], entry["consumer"].decode("utf-8", "replace")
    except redis.ResponseError as error:
        if not is_no_group(error):
            raise


def _members(client: redis.Redis, lane: Lane, stage: str, place: Place, size: int) -> Portions:
    for portion in _ranked(client, key_of(lane, stage, place), size):
        yield [
            of_member(place, member, int(score) if place is Place.DELAYED else 0, before=rank)
            for rank, member, score in portion
        ]


def _ranked(client: redis.Redis, name: str, size: int) -> Iterator[list[tuple[int, bytes, float]]]:
    """A sorted set in its order: rank, member and score of each."""
    at, last = 0, (float("-inf"), b"")
    while reply := _listed(client.zrange(name, at, at + size - 1, withscores=True)):
        # Members leave at the front, and then the others move up: what was met is known by its place in the order.
        fresh = [(rank, member, score) for rank, (member, score) in enumerate(reply, at) if (score, member) > last]
        if fresh:
            yield fresh
        end, score = reply[-1]
        last = max(last, (score, end))
        rank: Any = client.zrank(name, end)
        at = 0 if rank is None else int(rank) + 1


def _leased(client: redis.Redis, lane: Lane, stage: str, size: int) -> Portions:
    keys, ids = lane.stage(stage), _listed(client.zrange(key_of(lane, stage, Place.LEASED), 0, -1, withscores=True))
    for at in range(0, len(ids), size):
        portion = ids[at : at + size]
        members = _listed(client.hmget(keys.leased, [lease_id for lease_id, _ in portion]))
        yield [
            of_member(
                Place.LEASED,
                member,
                int(expiry),
                id_=lease_id,
                holder=holder_of(lease_id.decode("utf-8", "replace")),
                before=rank,
            )
            for rank, ((lease_id, expiry), member) in enumerate(zip(portion, members, strict=True), at)
            if member is not None
        ]


def _letters(client: redis.Redis, lane: Lane, stage: str, size: int) -> Portions:
    keys = lane.stage(stage)
    for portion in _ranked(client, keys.dead_index, size):
        ids = [letter_id for _, letter_id, _ in portion]
        letters = _listed(client.hmget(keys.dead, ids))
        yield [
            of_letter(DeadLetter.parse(letter_id, data), lane, stage)
            for letter_id, data in zip(ids, letters, strict=True)
            if data is not None
        ]


def _listed(reply: Any) -> list[Any]:
    return list(reply)
