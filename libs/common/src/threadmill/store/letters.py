"""Dead letters: work that was parked, with what it died of, now and before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from threadmill.model.keys import Lane
from threadmill.store.work import SEPARATOR, Record


@dataclass(frozen=True, slots=True)
class Death:
    """Why work was parked once, before it was replayed."""

    at_ms: int
    reason: str
    deliveries: int
    failures: int
    error: str

    @classmethod
    def parse_all(cls, history: bytes) -> tuple[Death, ...]:
        """Read what lua/lib/work.lua's `remember` wrote, oldest first."""
        deaths = [death.split(b"\x1d") for death in history.split(b"\x1e") if death]
        return tuple(
            cls(int(at), _text(reason), int(deliveries), int(failures), _text(error))
            for at, reason, deliveries, failures, error in deaths
        )


def written(history: Sequence[Death]) -> bytes:
    """A history as `remember` writes it."""
    return b"".join(
        b"\x1d".join((b"%d" % d.at_ms, _short(d.reason), b"%d" % d.deliveries, b"%d" % d.failures, _short(d.error)))
        + b"\x1e"
        for d in history[-10:]
    )


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Parked work. `body` is the task's bytes, or the request's payload."""

    id: str
    reason: str
    kind: str
    """`task` (never admitted) or `request`."""
    at_ms: int
    error: str
    job: str
    body: bytes
    deliveries: int
    """How often its worker died with it, and"""
    failures: int
    """how often it was tried in vain: counted apart, and since it was last replayed."""
    history: tuple[Death, ...]
    """What it died of before that."""
    record: Record | None = None
    """The request, if it is one."""

    @classmethod
    def parse(cls, letter_id: bytes, data: bytes) -> DeadLetter:
        try:
            return cls._parsed(letter_id, data)
        except ValueError:
            error = "the letter cannot be read: no release of Threadmill wrote it"
            return cls(_text(letter_id), "unreadable-letter", "unreadable", 0, error, "", data, 0, 0, ())

    @classmethod
    def of(cls, record: Record, reason: str, error: str, at_ms: int) -> DeadLetter:
        """The letter of a request that has none yet."""
        deaths = Death.parse_all(record.history)
        numbers = (record.deliveries, record.failures)
        return cls("", reason, "request", at_ms, error, record.job, record.payload, *numbers, deaths, record)

    @classmethod
    def _parsed(cls, letter_id: bytes, data: bytes) -> DeadLetter:
        reason, kind, at, error, body = data.split(SEPARATOR, 4)
        if kind == b"task":
            job, history, body = body.split(SEPARATOR, 2)
            record = Record(_text(job), "", 0, 0, 0, history, body)
        else:
            record = Record.parse(body)
        return cls(
            _text(letter_id),
            _text(reason),
            _text(kind),
            int(at),
            _text(error),
            record.job,
            record.payload,
            record.deliveries,
            record.failures,
            Death.parse_all(record.history),
            None if kind == b"task" else record,
        )


def dead_letters(
    client: redis.Redis, lane: Lane, stage: str, limit: int | None = None, batch: int = 500
) -> Iterator[DeadLetter]:
    """The dead letters of a stage, oldest first, read in batches."""
    keys = lane.stage(stage)
    at, found = 0, 0
    while limit is None or found < limit:
        ids: Any = client.zrange(keys.dead_index, at, at + batch - 1)
        if not ids:
            return
        bodies: Any = client.hmget(keys.dead, ids)
        for letter_id, body in zip(ids, bodies, strict=True):
            if body is not None and (limit is None or found < limit):
                found += 1
                yield DeadLetter.parse(letter_id, body)
        at += len(ids)


def _short(text: str) -> bytes:
    return re.sub(r"[\x00-\x1f]", " ", text).encode("utf-8", "replace")[:500]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
