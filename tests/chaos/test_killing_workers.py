"""Workers are killed at random while they work: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from waiting import wait_for

FORUMS = [str(n) for n in range(1, 11)]
KILLS = 5
SEED = 20_261_120


def test_five_kills_of_each_stage_during_a_crawl(tmp_path: Path) -> None:
    # Given the demo forum of `make run`, slow enough that there is time to kill
    random.seed(SEED)
    with pipeline(tmp_path, forum=["--latency-ms", "60", "--jitter-ms", "40"], max_deliveries=20) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        # When a worker of each stage is killed five times, at random moments while its stage has work
        kills = dict.fromkeys(STAGES, 0)
        while any(n < KILLS for n in kills.values()):
            stage = random.choice([name for name, n in kills.items() if n < KILLS])
            kill(rig, stage)
            kills[stage] += 1
            time.sleep(random.uniform(0.2, 0.8))  # the moment of the next kill, not a wait for anything
        wait_for(lambda: rig.fleet.tend() or True)
        done = rig.wait_until_done(job, seconds=180)
        # Then every row is stored once with its true content, and the books say so
        check = rig.check()
        assert check.ok, check
        assert not done.dead
        assert done.accepted == done.done
        for name in STAGES:
            books = rig.books(name)
            assert (books["leased"], books["requests"], books["tasks"], books["delayed"]) == (0, 0, 0, 0)


def kill(rig: Pipeline, stage: str) -> None:
    """SIGKILL the stage's worker once it is at work; after the last page of a stage, an idle one is as good."""
    service = STAGES[stage].service

    def at_work() -> int:
        rig.fleet.tend()
        pids = rig.fleet.pids(service)
        books = rig.books(stage)
        idle = books["accepted"] == books["done"] and books["accepted"] > 0
        return pids[0] if pids and (books["leased"] or idle) else 0

    os.kill(wait_for(at_work, 60, what=f"{service} to be at work"), signal.SIGKILL)
    wait_for(lambda: rig.fleet.tend() or len(rig.fleet.pids(service)) == 1, 30, what=f"{service} to be started again")


@pytest.mark.chaos
def test_kills_of_everything_for_a_minute(tmp_path: Path, seed: int) -> None:
    # Given two replicas of each stage on a slow forum
    random.seed(seed)
    with pipeline(tmp_path, forum=["--latency-ms", "100", "--jitter-ms", "80"], max_deliveries=50) as rig:
        rig.start()
        for stage in STAGES:
            rig.scale(stage, 2)
        job = rig.submit("list", FORUMS).job
        # When any of them, or the item writer, is killed every second or so for a minute
        until = time.monotonic() + 60
        while time.monotonic() < until:
            rig.fleet.tend()
            services = [*(stage.service for stage in STAGES.values()), "item_writer"]
            if pids := rig.fleet.pids(random.choice(services)):
                os.kill(random.choice(pids), signal.SIGKILL)
            time.sleep(random.uniform(0.3, 1.5))
        done = rig.wait_until_done(job, seconds=300)
        # Then nothing is lost, nothing doubled
        assert rig.check().ok, rig.check()
        assert not done.dead
