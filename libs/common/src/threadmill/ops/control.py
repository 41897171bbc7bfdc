"""Live control: pausing and draining stages, rates, concurrency, priorities. Kept in Redis, followed at once."""

from __future__ import annotations

from collections.abc import Callable

from threadmill.model.errors import ConfigError
from threadmill.model.stages import STAGES, Stage
from threadmill.model.task import EXPRESS_PRIORITY
from threadmill.ops.deployment import Deployment
from threadmill.store.calls import run
from threadmill.store.control import CONCURRENCY, DRAINING, PAUSED, RATE, said, say, set_rate
from threadmill.store.jobs import prioritize
from threadmill.store.orders import QUEUE_ORDERS

MOST_DOWNLOADS = 1000


def pause(deployment: Deployment, stage: Stage, source: str | None) -> None:
    """Lease nothing of the stage; what workers have not begun they give back."""
    say(deployment.client, deployment.lanes(source), stage.name, {PAUSED: "1"})


def drain(deployment: Deployment, stage: Stage, source: str | None) -> None:
    """Admit no new tasks to the stage; work off what was admitted."""
    say(deployment.client, deployment.lanes(source), stage.name, {DRAINING: "1"})


def resume(deployment: Deployment, stage: Stage, source: str | None) -> None:
    """Neither paused nor draining any more."""
    say(deployment.client, deployment.lanes(source), stage.name, {PAUSED: None, DRAINING: None})


def change_concurrency(deployment: Deployment, stage: Stage, source: str | None, downloads: int | None) -> None:
    """Downloads at a time of each worker of the stage; None: what its settings say."""
    value = None if downloads is None else str(downloads)
    say(deployment.client, deployment.lanes(source), stage.name, {CONCURRENCY: value})


def concurrency(deployment: Deployment, stage: Stage, source: str | None) -> int | None:
    """What an operator said, None if nothing."""
    value = said(deployment.client, deployment.lanes(source)[0], stage.name, CONCURRENCY)
    return int(value) if value is not None and value.isdecimal() else None


def change_rate(deployment: Deployment, source: str, per_s: float | None) -> None:
    """Requests/s of the whole site, shared by its partitions; 0: no limit; None: what the source says."""
    lanes = deployment.lanes(source)
    for lane in lanes:
        set_rate(deployment.client, lane, list(STAGES), None if per_s is None else per_s / len(lanes))


def rate(deployment: Deployment, source: str) -> float | None:
    """What an operator said of the site, None if nothing."""
    lanes = deployment.lanes(source)
    value = said(deployment.client, lanes[0], next(iter(STAGES)), RATE)
    try:
        return None if value is None else float(value) * len(lanes)
    except ValueError:  # somebody wrote something else; workers take it for nothing, too
        return None


def reprioritize(deployment: Deployment, job: str, priority: int, looked: Callable[[int], None]) -> int:
    """Give a job its priority, and place what waits of it anew; answers how many requests that were.

    `looked` is told how many were looked at. Broken off, it can be said again.
    """
    order = QUEUE_ORDERS[deployment.config.queue_order]
    if order.name != "priority":
        raise ConfigError(f"THREADMILL_QUEUE_ORDER is {order.name}: priorities change nothing")
    if abs(priority) >= EXPRESS_PRIORITY:
        raise ConfigError(f"a priority lies between ±{EXPRESS_PRIORITY - 1}")
    known, total = False, 0
    for lane in deployment.lanes():
        for stage in STAGES:
            cursor = "0"
            while True:
                call = prioritize(lane, stage, order, job, priority, cursor)
                cursor, seen, found = run(deployment.client, call)
                known, total = known or found >= 0, total + max(0, found)
                looked(seen)
                if cursor == "0":
                    break
    if not known:
        raise ConfigError(f"there is no job {job}: it never was, or its books are gone (threadmill jobs lists them)")
    return total
