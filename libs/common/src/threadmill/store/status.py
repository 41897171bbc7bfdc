"""What a deployment holds right now: books per stage, jobs, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES
from threadmill.store.calls import Call, run, run_all
from threadmill.store.clock import clock_ms
from threadmill.store.scripts import compose

SILENCE_MS = 15_000
"""A worker reports every few seconds; one silent for this long is not counted as alive."""


COUNTS = ("tasks", "requests", "leased", "delayed", "dead", "accepted", "done", "filtered", "workers")


@dataclass(frozen=True, slots=True)
class Books:
    """A stage's books at one instant: `accepted = done + tasks + requests + leased + delayed + dead`."""

    tasks: int = 0
    requests: int = 0
    leased: int = 0
    delayed: int = 0
    dead: int = 0
    accepted: int = 0
    done: int = 0
    filtered: int = 0
    workers: int = 0
    paused: bool = False
    draining: bool = False
    held: str = ""
    """What the stage waits for, by backpressure: a stage, or `items`; empty when it does not."""

    @property
    def open(self) -> int:
        return self.tasks + self.requests + self.leased + self.delayed

    @property
    def balanced(self) -> bool:
        return self.accepted == self.done + self.open + self.dead

    def __add__(self, other: Books) -> Books:
        values: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        # Every worker of a stage serves all partitions of its sources: it is one worker, not one a partition.
        values["workers"] = max(self.workers, other.workers)
        values["paused"] = self.paused and other.paused
        values["draining"] = self.draining and other.draining
        values["held"] = self.held or other.held
        return Books(**values)


@dataclass(frozen=True, slots=True)
class JobBooks:
    """A job's books over all its stages: `accepted = done + open + dead`."""

    open: int
    accepted: dict[str, int]
    done: dict[str, int]
    dead: dict[str, int]
    items: dict[str, int]
    filtered: dict[str, int]
    finished_at_ms: int | None
    held: bool = False
    """More of it is announced: it is still being submitted."""

    @property
    def known(self) -> bool:
        """Whether anything was ever submitted under it."""
        return bool(self.accepted or self.filtered)

    @property
    def finished(self) -> bool:
        return self.known and self.open == 0 and not self.held


_BOOKS = compose("books")


def stage_books(client: redis.Redis, lanes: Sequence[Lane]) -> dict[str, Books]:
    """The books of every stage, summed over lanes; each stage of each lane is read at one instant."""
    calls = [_books_call(lane, stage) for lane in lanes for stage in STAGES]
    answers = iter(run_all(client, calls))
    totals: dict[str, Books] = {}
    for _ in lanes:
        for stage in STAGES:
            books = next(answers)
            totals[stage] = totals[stage] + books if stage in totals else books
    return totals


def _books_call(lane: Lane, stage: str) -> Call[Books]:
    keys = lane.stage(stage)
    roots = (keys.tasks, keys.express, keys.requests, keys.leases, keys.delayed, keys.dead)
    return Call(_BOOKS, (*roots, keys.stats, keys.workers, keys.control), (SILENCE_MS,), _books)


def _books(reply: list[Any]) -> Books:
    *numbers, paused, draining, held = reply
    counts = dict(zip(COUNTS, numbers, strict=True))
    return Books(**counts, paused=bool(paused), draining=bool(draining), held=held.decode())


def items_waiting(client: redis.Redis, lanes: Sequence[Lane]) -> int:
    """Items committed and not yet settled by the store that is furthest behind."""
    waiting = 0
    for lane in lanes:
        stats = {name.decode(): int(value) for name, value in _hash(client, lane.items_stats).items()}
        settled = [value for name, value in stats.items() if name.startswith("settled:")]
        waiting += stats.get("committed", 0) - min(settled, default=0)
    return waiting


def job_books(client: redis.Redis, lanes: Sequence[Lane], job: str) -> JobBooks:
    """A job's books, summed over lanes."""
    tables = [_hash(client, lane.job(job)) for lane in lanes]
    return sum_books(tables, clock_ms(client) if any(b"hold" in table for table in tables) else 0)


def sum_books(lanes: Iterable[Mapping[bytes, bytes]], now_ms: int) -> JobBooks:
    """A job's books from its hash in each lane."""
    open_work, held, finished = 0, False, []
    tables: dict[str, dict[str, int]] = {name: {} for name in ("accepted", "done", "dead", "items", "filtered")}
    for lane in lanes:
        for name, value in lane.items():
            stage, _, field = name.decode("utf-8", "replace").rpartition(":")
            if field == "open":
                open_work += int(value)
            elif field == "finished_at":
                finished.append(int(value))
            elif field == "hold":
                held = held or int(value) > now_ms
            elif field in tables:
                tables[field][stage] = tables[field].get(stage, 0) + int(value)
    at = max(finished) if finished and open_work == 0 and not held else None
    return JobBooks(
        open_work, tables["accepted"], tables["done"], tables["dead"], tables["items"], tables["filtered"], at, held
    )


def run_books(client: redis.Redis, lane: Lane, stage: str) -> Books:
    """The books of one stage of one lane."""
    return run(client, _books_call(lane, stage))


def _hash(client: redis.Redis, key: str) -> dict[bytes, bytes]:
    reply: Any = client.hgetall(key)
    return dict(reply)
