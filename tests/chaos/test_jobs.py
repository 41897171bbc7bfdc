"""A job's books while workers are killed: true in every sample; it is finished once, when all of it is committed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chaos.oracle import assert_whole
from chaos.test_random_kills import FORUMS, RESTART_S, kill
from demo_forum.check import truth_of
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.ops import fleet
from threadmill.store.connection import connect
from threadmill.store.events import EventStreams
from threadmill.store.status import JobBooks, sum_books
from waiting import wait_for

SAMPLES = 1_000
KILLS = 12


@dataclass
class Sampler:
    """Looks at a job's books as often as it can, with what is committed at the same instant."""

    rig: Pipeline
    job: str
    over: threading.Event = field(default_factory=threading.Event)
    samples: list[tuple[JobBooks, int]] = field(default_factory=list)
    """Books, and items committed."""

    def run(self) -> None:
        client, lane = connect(self.rig.redis.url), self.rig.lane
        while not self.over.is_set() or len(self.samples) < SAMPLES:
            pipeline = client.pipeline(transaction=True)
            pipeline.hgetall(lane.job(self.job))
            pipeline.hget(lane.items_stats, "committed")
            book, committed = pipeline.execute()
            self.samples.append((sum_books([book], 0), int(committed or 0)))
        client.close()


@pytest.mark.chaos
@pytest.mark.scenario(25)
@pytest.mark.seeds(3)
def test_a_jobs_books_are_true_in_1000_samples_while_workers_are_killed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    # Given a slow crawl by one worker a stage, and somebody who looks at its job as often as possible
    monkeypatch.setattr(fleet, "RESTART_S", RESTART_S)
    dice = random.Random(seed)
    slow = ["--mean-comments", "4", "--latency-ms", "150", "--jitter-ms", "100"]
    with pipeline(tmp_path, forum=slow, max_deliveries=50) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        sampler = Sampler(rig, job)
        looking = threading.Thread(target=sampler.run)
        looking.start()
        try:
            # When workers are killed at random while it works
            for _ in range(KILLS):
                kill(rig, dice.choice(list(STAGES)))
                assert not rig.job(job).finished, "it ended before the last kill"
                time.sleep(dice.uniform(0.1, 0.6))  # the moment of the next kill, not a wait for anything
            under_way = len(sampler.samples)
            rig.turn(latency_ms=0, jitter_ms=0)
            rig.wait_until_done(job, seconds=180)
        finally:
            sampler.over.set()
            looking.join()
        samples: list[tuple[JobBooks, int]] = sampler.samples
        record_property("samples", len(samples))
        record_property("samples between kills", under_way)
        # Then in every sample the job's books balance, for each stage and as a whole
        assert under_way >= SAMPLES
        assert [books for books, _ in samples if not balanced(books)] == []
        # And it was finished from one moment on, when all its rows were committed, and that was told once
        finished = [at for at, (books, _) in enumerate(samples) if books.finished_at_ms]
        assert finished == list(range(finished[0], len(samples)))
        truth = sum(1 for kind in ("posts", "comments") for _ in truth_of(rig.forum_url, kind))
        assert {committed for _, committed in samples[finished[0] :]} == {truth}
        events: list[Any] = EventStreams(rig.deployment.client, rig.deployment.lanes()).last(100)
        assert [event.fields["job"] for event in events] == [job]
        wait_for(lambda: rig.books("comment")["leased"] == 0, what="the last leases")
        assert_whole(rig, job)


def balanced(books: JobBooks) -> bool:
    """accepted = done + open + dead, over all stages; and no stage has more behind it than came in."""
    accepted, ended = sum(books.accepted.values()), sum(books.done.values()) + sum(books.dead.values())
    stages = all(
        books.done.get(stage, 0) + books.dead.get(stage, 0) <= number for stage, number in books.accepted.items()
    )
    return accepted == ended + books.open and stages and (books.finished_at_ms is None or books.open == 0)
