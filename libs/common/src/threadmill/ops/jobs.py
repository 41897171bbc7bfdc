"""Jobs as an operator sees them: as JSON for scripts, as tables for people, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rich.table import Table

from threadmill.model.errors import ConfigError
from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment
from threadmill.ops.times import time_text
from threadmill.store.connection import STORE_FAILURES
from threadmill.store.jobs import Job, all_jobs, find_job, is_stored

TICK_S = 0.25
COUNTS = ("accepted", "done", "open", "dead", "items", "filtered")


@dataclass(frozen=True, slots=True)
class Awaited:
    """How waiting for a job ended."""

    job: Job
    stored: bool
    """Whether the item stores have all of it, if that was waited for."""

    @property
    def over(self) -> bool:
        return self.job.state == "finished" and self.stored


def newest(deployment: Deployment, limit: int, *, unfinished: bool = False) -> list[Job]:
    """The newest jobs, newest first; with `unfinished` only those that are not finished."""
    found = all_jobs(deployment.client, deployment.lanes(), *([] if unfinished else [max(1, min(limit, 500))]))
    return list(islice((job for job in found if not unfinished or job.state != "finished"), limit))


def known_job(deployment: Deployment, job_id: str) -> Job:
    """The job of this id; `ConfigError` if there is none."""
    job = find_job(deployment.client, deployment.lanes(), job_id)
    if job is None:
        raise ConfigError(f"there is no job {job_id}: it never was, or its books are gone (threadmill jobs lists them)")
    return job


def wait_for_job(
    deployment: Deployment,
    job_id: str,
    *,
    stored: bool,
    timeout_s: float | None,
    seen: Callable[[Job], None],
) -> Awaited:
    """Look at a job until it is finished, and with `stored` until the item stores have all of it.

    While Redis is away it waits on, as long as services do at their start (THREADMILL_REDIS_WAIT_MS).
    """
    began = heard = time.monotonic()
    while True:
        try:
            awaited = _look(deployment, job_id, stored=stored)
            heard = time.monotonic()
            seen(awaited.job)
            if awaited.over or (timeout_s is not None and heard - began >= timeout_s):
                return awaited
        except STORE_FAILURES:
            if time.monotonic() - heard >= deployment.config.redis_wait_ms / 1000:
                raise
        left = TICK_S if timeout_s is None else began + timeout_s - time.monotonic()
        time.sleep(max(0.0, min(TICK_S, left)))


def _look(deployment: Deployment, job_id: str, *, stored: bool) -> Awaited:
    job, at = known_job(deployment, job_id), None
    if job.state == "finished":
        at = job.books.finished_at_ms
    if not stored or at is None:
        return Awaited(job, not stored)
    return Awaited(job, is_stored(deployment.client, deployment.lanes(), at))


def as_json(job: Job) -> dict[str, Any]:
    """`{"job", "state", "sources", "priority", "begun_at", "finished_at", "seconds", accepted, …, "stages": {…}}`."""
    books, begun = job.books, job.begun_at_ms
    stages = {stage: {name: _count(job, name, stage) for name in COUNTS} for stage in _stages(job)}
    finished = books.finished_at_ms
    return {
        "job": job.id,
        "state": job.state,
        "sources": list(job.sources),
        "priority": job.priority,
        "begun_at": None if begun is None else time_text(begun),
        "finished_at": None if finished is None else time_text(finished),
        "seconds": None if begun is None or finished is None else (finished - begun) / 1000,
        **{name: sum(counts[name] for counts in stages.values()) for name in COUNTS},
        "stages": stages,
    }


def table(jobs: list[dict[str, Any]]) -> Table:
    """Jobs, one a line; those that are not finished stand out."""
    view = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("job", "state", "begun", "took"):
        view.add_column(name)
    for name in COUNTS:
        view.add_column(name, justify="right")
    for job in jobs:
        style = "red" if job["dead"] else None if job["state"] == "finished" else "green"
        counts = (f"{job[name]:,}" for name in COUNTS)
        view.add_row(job["job"], job["state"], _moment(job["begun_at"]), _took(job["seconds"]), *counts, style=style)
    return view


def stage_table(job: dict[str, Any]) -> Table:
    """One job, a stage a line."""
    view = Table(box=None, header_style="bold", pad_edge=False, caption_justify="left")
    view.add_column("stage")
    for name in COUNTS:
        view.add_column(name, justify="right")
    for stage, counts in job["stages"].items():
        view.add_row(stage, *(f"{counts[name]:,}" for name in COUNTS), style="red" if counts["dead"] else None)
    return view


def sentence(job: dict[str, Any]) -> str:
    """What became of a job, in one line."""
    begun = f"begun {_moment(job['begun_at'])}"
    if job["state"] == "finished":
        return f"finished {_moment(job['finished_at'])}, after {_took(job['seconds'])}; {begun}"
    more = ", more is being submitted" if job["state"] == "submitting" else ""
    return f"{job['open']:,} open{more}; {begun}"


def _stages(job: Job) -> list[str]:
    books = job.books
    met = books.accepted.keys() | books.filtered.keys() | books.done.keys() | books.dead.keys()
    return [*(stage for stage in STAGES if stage in met), *sorted(met - STAGES.keys())]


def _count(job: Job, name: str, stage: str) -> int:
    books = job.books
    if name == "open":
        gone = books.done.get(stage, 0) + books.dead.get(stage, 0)
        return books.accepted.get(stage, 0) - gone
    counts: dict[str, int] = getattr(books, name)
    return counts.get(stage, 0)


def _moment(text: str | None) -> str:
    return "" if text is None else text[:19].replace("T", " ")


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
