"""Pieces of work: a task in a stream, or a page that waits, is leased, or is parked. What each says of itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import orjson

from threadmill.model.errors import TaskError
from threadmill.model.keys import Lane
from threadmill.model.task import EXPRESS_PRIORITY, Task
from threadmill.store.letters import DeadLetter, Death
from threadmill.store.work import Entry, Record


class Place(StrEnum):
    """Where a piece of work lies in its stage."""

    EXPRESS = "express"
    TASKS = "tasks"
    REQUESTS = "requests"
    LEASED = "leased"
    DELAYED = "delayed"
    DEAD = "dead"


STREAMS = (Place.EXPRESS, Place.TASKS)
QUEUES = (Place.REQUESTS, Place.DELAYED)


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work. Times are ms since 1970 on Redis's clock."""

    place: Place
    id: bytes
    """What its place knows it by: the entry's id, the queue's member, the lease's id, the letter's id."""
    what: Task | Record | bytes
    """The work itself; bytes if it cannot be read."""
    job: str = ""
    key: str = ""
    """A forum's or a post's id; empty if it cannot be read."""
    page: int | None = None
    """Which page of it; None for a task, which is no page yet."""
    known: str = ""
    """The version that was known before it was submitted."""
    force: bool = False
    """Whether it passed the filter because somebody said so."""
    priority: int = 0
    deliveries: int = 0
    failures: int = 0
    history: tuple[Death, ...] = ()
    """What it died of before it was replayed."""
    at_ms: int = 0
    """Since when the task waits; when the page is due; when its lease ends; when it was parked. 0: not known."""
    holder: str = ""
    """The worker that has it: a page's lease, or a task that was read and is not admitted."""
    before: int | None = None
    """How many pieces of its place come before it, if that was found out."""
    letter: DeadLetter | None = None
    streamed: bool = False
    """Whether a script counted this task when it came; those pushed from outside count when they go."""

    @property
    def express(self) -> bool:
        """Whether it comes before everything else, because an operator asked for it."""
        return self.place is Place.EXPRESS or self.priority >= EXPRESS_PRIORITY

    @property
    def readable(self) -> bool:
        return not isinstance(self.what, bytes)


def of_entry(entry: Entry, lane: Lane, stage: str, *, before: int | None = None, holder: str = "") -> Piece:
    """A task that waits in a stream."""
    place = Place.EXPRESS if entry.express else Place.TASKS
    at_ms, job = int(entry.id.split(b"-")[0]), entry.fields.get(b"j", b"").decode("utf-8", "replace")
    kept = Piece(place, entry.id, entry.raw, job, at_ms=at_ms, holder=holder, before=before, streamed=entry.streamed)
    try:
        task = Task.from_fields(entry.fields, source=lane.source, stage=stage, entry_id=entry.id)
    except TaskError:
        return kept
    return replace(_of_task(kept, task), history=Death.parse_all(entry.history))


def of_member(
    place: Place, member: bytes, at_ms: int = 0, *, id_: bytes = b"", holder: str = "", before: int | None = None
) -> Piece:
    """A page of the request queue, of those that are delayed, or of those that are leased (`id_`: the lease's)."""
    kept = Piece(place, id_ or member, member, at_ms=at_ms, holder=holder, before=before)
    try:
        return _of_record(kept, Record.parse(member[8:]))
    except (ValueError, UnicodeDecodeError):
        return kept


def of_letter(letter: DeadLetter, lane: Lane, stage: str) -> Piece:
    """Parked work."""
    kept = Piece(
        Place.DEAD,
        letter.id.encode(),
        letter.body,
        letter.job,
        history=letter.history,
        at_ms=letter.at_ms,
        letter=letter,
    )
    if letter.record is not None:
        return _of_record(kept, letter.record)
    try:
        # The books know it by the letter's job: what the task says of its own was never looked at.
        return replace(_of_task(kept, Task.from_json(letter.body, source=lane.source, stage=stage)), job=letter.job)
    except TaskError:
        return kept


def _of_task(kept: Piece, task: Task) -> Piece:
    return replace(
        kept,
        what=task,
        job=kept.job or task.job,
        key=task.key,
        known=task.known,
        force=task.force,
        priority=task.priority,
    )


def _of_record(kept: Piece, record: Record) -> Piece:
    reference = reference_of(record.payload)
    return replace(
        kept,
        what=record,
        job=record.job,
        key=reference.key,
        page=reference.page,
        known=reference.known,
        force=reference.force,
        priority=record.priority,
        deliveries=record.deliveries,
        failures=record.failures,
        history=Death.parse_all(record.history),
    )


class Reference(NamedTuple):
    """What the payload of a stage's request says (docs/redis-keys.md); a plain spider's request has no key."""

    key: str = ""
    page: int = 1
    known: str = ""
    force: bool = False


def reference_of(payload: bytes) -> Reference:
    try:
        body = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return Reference()
    if not isinstance(body, dict) or not isinstance(key := body.get("k"), str):
        return Reference()
    page, known = body.get("n", 1), body.get("o", "")
    return Reference(
        key, page if type(page) is int else 1, known if isinstance(known, str) else "", body.get("f") is True
    )
