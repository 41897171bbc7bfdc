"""Jobs: all that descends from one submission. Their books are kept by the verbs that move work."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from threadmill.model.keys import Lane
from threadmill.store.calls import Call, Command, attempt_all, run_all
from threadmill.store.clock import CLOCK
from threadmill.store.connection import STORE_FAILURES, Client
from threadmill.store.orders import QueueOrder
from threadmill.store.scripts import compose
from threadmill.store.status import JobBooks, sum_books

_ANNOUNCE = compose("announce")
_FORGET = compose("forget_jobs")

PORTION = 500
"""Jobs, or waiting requests, that are looked at in one round trip."""
HOLD_MS = 60_000
"""A submission that says nothing for so long has died: what came of it is the job."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job and its books, summed over the lanes it reached."""

    id: str
    sources: tuple[str, ...]
    begun_at_ms: int | None
    priority: int
    """Added to the priority of its requests."""
    books: JobBooks

    @property
    def state(self) -> str:
        """`submitting` (more of it is announced), `open` or `finished`."""
        return "submitting" if self.books.held else "open" if self.books.open else "finished"


def announce(lane: Lane, job: str, for_ms: int, *, keep_s: int | None = None) -> Call[int]:
    """Say that more of a job comes to the lane within `for_ms`, so that it is not finished before; 0: no more.

    Its books are kept for `keep_s` once it is finished, by default thirty days.
    """
    return Call(_ANNOUNCE, (lane.jobs_prefix,), (job, for_ms, keep_s if keep_s is not None else ""), int)


@contextmanager
def submitting(client: Client, lanes: Sequence[Lane], job: str) -> Iterator[Callable[[], None]]:
    """Within it the job is not finished in any of these lanes, whatever is done already.

    What it gives is to be called before each part of the submission: it says, now and then, that there is more.
    """
    if not job or not lanes:
        yield lambda: None
        return
    said = 0.0

    def go_on() -> None:
        nonlocal said
        if time.monotonic() - said >= HOLD_MS / 4000:
            run_all(client, [announce(lane, job, HOLD_MS) for lane in lanes])
            said = time.monotonic()

    go_on()
    try:
        yield go_on
    except STORE_FAILURES:
        raise  # Redis cannot be told that it is over; the announcement lapses
    except BaseException:
        run_all(client, [announce(lane, job, 0) for lane in lanes])
        raise
    run_all(client, [announce(lane, job, 0) for lane in lanes])


def find_job(client: Client, lanes: Sequence[Lane], job: str) -> Job | None:
    """One job; None if nothing was ever submitted under it, or its books are gone."""
    found = _read(client, lanes, [job])
    return found[0] if found else None


def all_jobs(client: Client, lanes: Sequence[Lane], portion: int = PORTION) -> Iterator[Job]:
    """All jobs, newest first, read in portions. The index forgets those whose books are gone."""
    indexes = [_index(client, lane, portion) for lane in lanes]
    ids = (job for _, job in heapq.merge(*indexes, reverse=True))
    told: set[str] = set()
    while some := list(islice(ids, portion)):
        fresh = [job for job in dict.fromkeys(some) if job not in told]
        told.update(fresh)
        yield from _read(client, lanes, fresh)


def prioritize(
    lane: Lane, stage: str, order: QueueOrder, job: str, priority: int, cursor: str
) -> Call[tuple[str, int, int]]:
    """Give a job its priority, and place a portion of the requests that wait anew.

    Begin with cursor "0"; answers the next one ("0": all were looked at), how many requests were looked at,
    and how many of them are the job's, -1 if the lane does not know the job.
    """
    script = compose("prioritize", {"score": order.lua})
    keys = (lane.stage(stage).requests, lane.jobs_prefix)
    return Call(script, keys, (job, priority, cursor, PORTION), lambda reply: (reply[0].decode(), *reply[1:]))


def is_stored(client: Client, lanes: Sequence[Lane], until_ms: int) -> bool:
    """Whether the item stores have all that was committed until then (ms, Redis clock)."""
    waiting = run_all(client, [Command(("XRANGE", lane.items, "-", until_ms, "COUNT", 1), list) for lane in lanes])
    return not any(waiting)


def _index(client: Client, lane: Lane, portion: int) -> Iterator[tuple[float, str]]:
    """(begun at, job) of a lane, newest first. Jobs that begin meanwhile push the others on: some come twice."""
    at = 0
    while True:
        last = at + portion - 1
        (reply,) = run_all(client, [Command(("ZREVRANGE", lane.jobs, at, last, "WITHSCORES"), list)])
        yield from ((float(begun), job.decode()) for job, begun in zip(reply[::2], reply[1::2], strict=True))
        if len(reply) < 2 * portion:
            return
        at += portion


def _read(client: Client, lanes: Sequence[Lane], ids: Sequence[str]) -> list[Job]:
    """The jobs of these ids that there are, in this order."""
    places = [(job, lane) for job in ids for lane in lanes]
    calls: list[Command[Any]] = [CLOCK]
    for job, lane in places:
        calls.append(Command(("HGETALL", lane.job(job)), _table))
        calls.append(Command(("ZSCORE", lane.jobs, job), lambda reply: None if reply is None else int(float(reply))))
    now_ms, *replies = run_all(client, calls)
    _mend(client, places, replies[::2], now_ms)
    width, found = 2 * len(lanes), []
    for at, job in enumerate(ids):
        books, begun = replies[width * at : width * (at + 1) : 2], replies[width * at + 1 : width * (at + 1) : 2]
        if any(books):
            found.append(_job(job, lanes, books, begun, now_ms))
    return found


def _job(
    job: str, lanes: Sequence[Lane], books: Sequence[dict[bytes, bytes]], begun: Sequence[int | None], now_ms: int
) -> Job:
    reached = [lane.source for lane, book in zip(lanes, books, strict=True) if book]
    at = min((each for each in begun if each is not None), default=None)
    priority = next((int(book[b"priority"]) for book in books if b"priority" in book), 0)
    return Job(job, tuple(dict.fromkeys(reached)), at, priority, sum_books(books, now_ms))


def _mend(client: Client, places: Sequence[tuple[str, Lane]], books: Sequence[dict[bytes, bytes]], now_ms: int) -> None:
    """The index forgets jobs whose books are gone; a job whose submission died before it was over is finished.

    Not if Redis takes no writes: whoever looks next does it.
    """
    calls: list[Call[int]] = []
    for (job, lane), book in zip(places, books, strict=True):
        if not book:
            calls.append(Call(_FORGET, (lane.jobs, lane.jobs_prefix), (job,), int))
        elif book.get(b"hold", b"").isdigit() and int(book[b"hold"]) <= now_ms and book.get(b"open", b"0") == b"0":
            calls.append(announce(lane, job, 0))
    if calls:
        attempt_all(client, calls)


def _table(reply: Any) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else dict(reply)
