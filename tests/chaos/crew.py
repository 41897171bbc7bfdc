"""All services of a pipeline at once, and what they do to Redis while it is ill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import BusyLoadingError, RedisError

from end_to_end.pipeline import Pipeline
from threadmill.model.stages import STAGES
from waiting import wait_for

IDLE_COMMANDS_PER_S = 200
"""What a whole pipeline may say to Redis when there is nothing to do; a hot loop says thousands."""


def everything_runs(rig: Pipeline, replicas: int = 1) -> None:
    """Start all services, and wait until all of them have said so in Redis."""
    rig.start()
    for stage in STAGES:
        rig.scale(stage, replicas)
    wait_for(lambda: all(rig.books(stage)["workers"] == replicas for stage in STAGES), what="the workers to report")
    items = rig.lane.items
    wait_for(lambda: rig.deployment.client.exists(items), what="the item writer to make its group")


def all_pids(rig: Pipeline) -> list[int]:
    """The process ids of all services, to see that none was replaced."""
    services = [*(stage.service for stage in STAGES.values()), "item_writer"]
    return sorted(pid for service in services for pid in rig.fleet.pids(service))


@contextmanager
def all_stopped(rig: Pipeline) -> Iterator[None]:
    """SIGSTOP all services, so that Redis can be looked at as it is; SIGCONT at the end."""
    pids = all_pids(rig)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def answering(rig: Pipeline) -> int:
    """Wait until Redis answers; how often it said that it was loading."""
    loading = 0

    def answers() -> bool:
        nonlocal loading
        try:
            return bool(rig.deployment.client.ping())
        except BusyLoadingError:
            loading += 1
        except (RedisError, OSError):
            pass
        return False

    wait_for(answers, 60, every=0.05, what="Redis to answer")
    return loading


def commands_per_second(rig: Pipeline, seconds: float) -> float:
    """What all processes together say to Redis, measured over some time; ours is two commands of it."""
    client = rig.deployment.client
    before, began = client.info("stats")["total_commands_processed"], time.monotonic()
    time.sleep(seconds)  # the time that is measured
    return float((client.info("stats")["total_commands_processed"] - before) / (time.monotonic() - began))


def logs(rig: Pipeline) -> dict[str, str]:
    """What each process has logged, by the name of its log."""
    return {file.stem: file.read_text(errors="replace") for file in rig.fleet.logs.glob("*.log")}
