"""Counts what is really in Redis, entry by entry, and compares it with what the books say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import redis

from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES
from threadmill.store.calls import run_all
from threadmill.store.status import Books, _books_call
from threadmill.store.work import SEPARATOR, Record


@dataclass
class Census:
    """What one stage holds, counted by hand."""

    open_by_job: Counter[str] = field(default_factory=Counter)
    dead_by_job: Counter[str] = field(default_factory=Counter)
    pages_by_run: Counter[str] = field(default_factory=Counter)


def audit(client: redis.Redis, lane: Lane, jobs: Iterable[str] = ()) -> dict[str, Books]:
    """Fails if any book of the lane differs from what is there; answers the books of every stage."""
    books = dict(zip(STAGES, run_all(client, [_books_call(lane, stage) for stage in STAGES]), strict=True))
    pipeline = client.pipeline(transaction=False)
    for stage in STAGES:
        keys = lane.stage(stage)
        pipeline.xrange(keys.tasks).xrange(keys.express)
        pipeline.zrange(keys.requests, 0, -1).zrange(keys.delayed, 0, -1)
        pipeline.hgetall(keys.leased).zrange(keys.leases, 0, -1)
        pipeline.hgetall(keys.dead).zrange(keys.dead_index, 0, -1)
        pipeline.hgetall(keys.runs).hget(keys.stats, "streamed")
    jobs = tuple(jobs)
    for job in jobs:
        pipeline.hgetall(lane.job(job))
    pipeline.zrange(lane.jobs, 0, -1)
    *replies, index = pipeline.execute()
    each = (len(replies) - len(jobs)) // len(STAGES)
    counted = {stage: _audit_stage(books[stage], replies[at * each :][:each]) for at, stage in enumerate(STAGES)}
    for job, book in zip(jobs, replies[each * len(STAGES) :], strict=True):
        assert not book or job.encode() in index, f"job {job} has books and is not in the index"
        _audit_job(job, {name.decode(): int(value) for name, value in book.items()}, counted)
    return books


def _audit_stage(books: Books, held: list[Any]) -> Census:
    tasks, express, requests, delayed, leased, leases, dead, index, runs, streamed = held
    census = Census()
    assert books.tasks == len(tasks) + len(express)
    assert books.requests == len(requests)
    assert books.delayed == len(delayed)
    assert books.leased == len(leased)
    assert books.dead == len(dead)
    assert set(leased) == set(leases), "a lease without its request, or the reverse"
    assert set(dead) == set(index), "a letter without its time, or the reverse"
    assert books.balanced, f"accepted is not done + open + dead: {books}"

    submitted = [fields for _, fields in tasks + express if b"j" in fields]
    assert int(streamed or 0) == len(submitted)
    census.open_by_job.update(fields[b"j"].decode() for fields in submitted)
    for member in [*requests, *delayed, *leased.values()]:
        record = Record.parse(member[8:])
        census.open_by_job[record.job] += 1
        census.pages_by_run[record.run] += 1
    for letter in dead.values():
        _, kind, _, _, body = letter.split(SEPARATOR, 4)
        census.dead_by_job[body.split(SEPARATOR, 1)[0].decode()] += 1
        if kind == b"request":
            census.pages_by_run[Record.parse(body).run] += 1
    several = {run: pages for run, pages in census.pages_by_run.items() if run and pages > 1}
    assert {run.decode(): int(pages) for run, pages in runs.items()} == several, "runs are not the pages they have"
    return census


def _audit_job(job: str, book: dict[str, int], counted: dict[str, Census]) -> None:
    assert book.get("open", 0) == sum(census.open_by_job[job] for census in counted.values()), f"open work of job {job}"
    for stage, census in counted.items():
        accepted, done, dead = (book.get(f"{stage}:{name}", 0) for name in ("accepted", "done", "dead"))
        assert dead == census.dead_by_job[job], f"dead work of job {job} in {stage}"
        assert accepted == done + census.open_by_job[job] + dead, f"books of job {job} in {stage}"
    if book.get("open"):
        assert "finished_at" not in book
    elif "hold" not in book and any(name.endswith(":accepted") for name in book):
        assert "finished_at" in book
