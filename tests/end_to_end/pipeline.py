"""The rig of the end-to-end tests: a demo forum, a Redis, and the services as real processes."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo_forum.check import Check, compare, rows_of
from demo_forum.run import demo_forum
from threadmill.model.config import Config
from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES, stage_named
from threadmill.ops import report
from threadmill.ops.deployment import Deployment
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.fleet import Fleet
from threadmill.ops.submission import Submission, new_job_id, submit
from threadmill.store.status import JobBooks, items_waiting, job_books
from waiting import wait_for


@dataclass
class Pipeline:
    """Everything that runs, and what tests ask of it."""

    forum_url: str
    redis: EmbeddedRedis
    fleet: Fleet
    deployment: Deployment
    database: Path
    replicas: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STAGES, 1))

    @property
    def lane(self) -> Lane:
        return self.deployment.lanes()[0]

    def start(self, *stages: str, writer: bool = True) -> None:
        """Start one replica of these stages (all, if none is named) and the item writer."""
        for stage in stages or STAGES:
            self.scale(stage, 1)
        if writer:
            self.fleet.scale("item_writer", 1)

    def scale(self, stage: str, replicas: int) -> None:
        self.fleet.scale(STAGES[stage].service, replicas)

    def submit(self, stage: str, ids: list[str], **how: Any) -> Submission:
        source = self.deployment.source(None)
        how.setdefault("job", new_job_id())
        return submit(self.deployment, source, stage_named(stage), ids, **how)

    def books(self, stage: str) -> dict[str, Any]:
        stages: dict[str, dict[str, Any]] = report.status(self.deployment)["sources"]["bbs"]["stages"]
        return stages[stage]

    def job(self, job: str) -> JobBooks:
        return job_books(self.deployment.client, self.deployment.lanes(), job)

    def wait_until_done(self, job: str, seconds: float = 90.0) -> JobBooks:
        """Wait until nothing of the job is open and its items are stored; dead processes are started again."""

        def done() -> bool:
            self.fleet.tend()
            # In this order: what is committed after the job was finished is none of its items.
            return self.job(job).finished and items_waiting(self.deployment.client, self.deployment.lanes()) == 0

        wait_for(done, seconds, every=0.05, what=f"job {job} to be done")
        return self.job(job)

    def check(self) -> Check:
        """What is stored against the forum's truth."""
        return compare(rows_of(self.database, "posts"), rows_of(self.database, "comments"), self.forum_url)

    def hits(self) -> dict[str, int]:
        """Downloads per path, as the forum counted them."""
        with urllib.request.urlopen(f"{self.forum_url}/hits?paths=1", timeout=30) as response:
            paths: dict[str, int] = json.load(response)["paths"]
        return paths

    def grow(self, post: str, comments: int) -> None:
        """Let a post of the forum get so many comments now."""
        self._open_door(f"grow?post={post}&comments={comments}")

    def delete(self, post: str) -> None:
        """Let a post be deleted from the forum now."""
        self._open_door(f"delete?post={post}")

    def _open_door(self, door: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.forum_url}/{door}", b""), timeout=30).close()

    def turn(self, **knobs: Any) -> None:
        """Change the forum's fault knobs."""
        body = json.dumps(knobs).encode()
        request = urllib.request.Request(f"{self.forum_url}/knobs", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30).close()

    def environment(self) -> dict[str, str]:
        """What a command of the operator's needs to work on this deployment."""
        return self.fleet.environment


@contextmanager
def pipeline(folder: Path, *, forum: list[str] | None = None, **settings: Any) -> Iterator[Pipeline]:
    """A pipeline whose services are not started yet; `forum` are the demo forum's options."""
    with demo_forum(folder, forum or []) as url, EmbeddedRedis(folder / "redis") as redis:
        database = folder / "threadmill.db"
        environment = {
            "THREADMILL_REDIS_URL": redis.url,
            "THREADMILL_SOURCES": "sources/bbs.toml",
            "THREADMILL_BASE_URL": url,
            "THREADMILL_STORE_URL": f"sqlite:///{database}",
            "THREADMILL_LEASE_TTL_MS": "3000",
            **{f"THREADMILL_{name.upper()}": str(value) for name, value in settings.items()},
        }
        values = {name.removeprefix("THREADMILL_").lower(): value for name, value in environment.items()}
        deployment = Deployment.connected(Config.model_validate(values), wait_ms=10_000)
        fleet = Fleet(environment, folder / "logs")
        try:
            yield Pipeline(url, redis, fleet, deployment, database)
        finally:
            fleet.stop()
            deployment.client.close()
