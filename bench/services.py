"""Threadmill's services as they are deployed: one process a replica, on a Redis and a site of the benchmark's."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.child import ROOT
from threadmill.model.config import Config
from threadmill.model.keys import Lane
from threadmill.model.stages import STAGES, stage_named
from threadmill.ops.deployment import Deployment
from threadmill.ops.fleet import Fleet
from threadmill.ops.submission import new_job_id, submit
from threadmill.store.status import Books, run_books

_START_TIMEOUT_S = 300.0
_STOP_S = 5.0
_QUIET_S = 0.5  # after the last worker has said that it is there, until it has nothing left to do


@dataclass(frozen=True, slots=True)
class Services:
    """Running services, and what an operator does with them."""

    deployment: Deployment
    fleet: Fleet
    replicas: Mapping[str, int]

    @property
    def lanes(self) -> list[Lane]:
        return self.deployment.lanes()

    def submit(self, stage: str, *keys: str) -> None:
        """As `threadmill submit` does it."""
        source = self.deployment.source(None)
        submit(self.deployment, source, stage_named(stage), keys, job=new_job_id())

    def books(self, stage: str) -> Books:
        """The books of the first lane's stage; one round trip."""
        return run_books(self.deployment.client, self.lanes[0], stage)

    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [pid for stage in self.replicas for pid in self.fleet.pids(STAGES[stage].service)]

    def wait_until_idle(self) -> None:
        """Wait until all workers have arrived. Raises RuntimeError with the end of its log if one dies."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        # A worker arrives in one lane after the other: all are there when the last lane knows all of them.
        client, lane = self.deployment.client, self.lanes[-1]
        while any(run_books(client, lane, stage).workers < number for stage, number in self.replicas.items()):
            for dead in self.fleet.children:
                if dead.process is not None and dead.process.poll() is not None:
                    log = (self.fleet.logs / f"{dead.service}-{dead.number}.log").read_text()
                    raise RuntimeError(f"{dead.service} ended before it had arrived:\n{log[-4000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the services did not arrive within {_START_TIMEOUT_S:.0f} s")
            time.sleep(0.05)
        time.sleep(_QUIET_S)


@contextmanager
def services(redis_port: int, site_url: str, replicas: Mapping[str, int], **settings: object) -> Iterator[Services]:
    """Starts `replicas` of each stage, which run until the end of the block; `settings` are `THREADMILL_<NAME>`s."""
    environment = {
        "THREADMILL_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "THREADMILL_SOURCES": str(ROOT / "sources/bbs.toml"),
        "THREADMILL_BASE_URL": site_url,
        "THREADMILL_LOG_LEVEL": "WARNING",
        **{f"THREADMILL_{name.upper()}": str(value) for name, value in settings.items()},
    }
    values = {name.removeprefix("THREADMILL_").lower(): value for name, value in environment.items()}
    with tempfile.TemporaryDirectory(prefix="threadmill-bench-") as folder:
        deployment = Deployment.connected(Config.model_validate(values), wait_ms=10_000)
        fleet = Fleet(environment, Path(folder))
        try:
            for stage, number in replicas.items():
                fleet.scale(STAGES[stage].service, number)
            yield Services(deployment, fleet, replicas)
        finally:
            fleet.stop(_STOP_S)
            deployment.client.close()
