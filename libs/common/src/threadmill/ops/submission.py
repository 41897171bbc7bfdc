"""Submitting tasks by hand: what `threadmill submit` and `threadmill requeue` do."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from threadmill.model.keys import Lane
from threadmill.model.source import Source
from threadmill.model.stages import Stage
from threadmill.model.task import Task
from threadmill.ops.deployment import Deployment
from threadmill.store.calls import run
from threadmill.store.jobs import submitting

BATCH = 500
"""Tasks of one call: a script holds Redis for a few ms at most."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What came of it."""

    job: str
    submitted: int
    filtered: int


def new_job_id() -> str:
    """A number below 2³¹: every waiting task carries it, and Redis keeps that in 4 bytes."""
    return str(secrets.randbelow(2**31))


def submit(
    deployment: Deployment,
    source: Source,
    stage: Stage,
    keys: Sequence[str],
    *,
    job: str,
    params: Mapping[str, str] | None = None,
    priority: int = 0,
    force: bool = False,
    cascade: bool = False,
    full: bool = False,
    express: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Submission:
    """Check all keys first (`TaskError` names the bad one, and nothing is submitted), then submit in batches."""
    Task(stage.name, source.name, keys[0] if keys else "0", job=job, priority=priority).checked()
    rules = source.rules(stage.name)
    by_lane: dict[Lane, list[Task]] = defaultdict(list)
    for key in keys:
        checked = rules.check(key, params or {})
        by_lane[deployment.lane_of(source, key)].append(
            Task(
                stage=stage.name,
                source=source.name,
                key=key,
                params=checked,
                priority=priority,
                force=force,
                cascade=cascade,
                full=full,
            )
        )
    submitted = filtered = 0
    at_once = len(by_lane) == 1 and len(keys) <= BATCH
    with submitting(deployment.client, [] if at_once else list(by_lane), job) as go_on:
        for lane, tasks in by_lane.items():
            store = deployment.store(lane, stage)
            for at in range(0, len(tasks), BATCH):
                go_on()
                batch = tasks[at : at + BATCH]
                call = store.submit(batch, token=secrets.token_hex(8), job=job, express=express)
                accepted, known = run(deployment.client, call)
                submitted, filtered = submitted + accepted, filtered + known
                progress(len(batch))
    return Submission(job, submitted, filtered)
