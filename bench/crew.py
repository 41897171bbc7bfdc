"""Some replicas of one stage, started and stopped as `threadmill up` does, on a Redis and a forum of their own."""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.child import ROOT
from bench.replica import Tally
from threadmill.model.config import Config
from threadmill.model.stages import COMMENT
from threadmill.ops.deployment import Deployment
from threadmill.ops.fleet import Fleet
from threadmill.ops.submission import new_job_id, submit
from threadmill.store.status import Books, stage_books

STAGE = COMMENT
_START_S = 30.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What a crew works under: downloads at a time of one replica, partitions of the source, way of paging."""

    concurrency: int = 16
    partitions: int = 1
    paging: str = "chained"


class Crew:
    """Replicas at work. `tallies` has what each did, once they have stopped."""

    def __init__(self, deployment: Deployment, fleet: Fleet) -> None:
        self._deployment = deployment
        self._fleet = fleet
        self.client = deployment.client
        self.tallies: list[Tally] = []

    def submit(self, post_ids: Sequence[str]) -> str:
        """Asks for the comments of these posts, as `threadmill submit` does; the job's id."""
        source = self._deployment.source(None)
        return submit(self._deployment, source, STAGE, post_ids, job=new_job_id()).job

    @property
    def books(self) -> Books:
        """The stage's books now, over all partitions."""
        return stage_books(self.client, self._deployment.lanes())[STAGE.name]

    def until(self, reached: Callable[[Books], bool], seconds: float, every_s: float = 0.02) -> None:
        """Looks again and again until the books are so; `RuntimeError` if a replica dies or it takes too long."""
        deadline = time.monotonic() + seconds
        while not reached(self.books):
            if deaths := self._fleet.tend():
                raise RuntimeError("; ".join(deaths))
            if time.monotonic() > deadline:
                raise RuntimeError(f"{seconds:.0f} s were not enough: {self.books}")
            time.sleep(every_s)

    def check(self) -> None:
        """Raises `RuntimeError` unless the books balance and nothing failed."""
        if not self.books.balanced or self.books.dead:
            raise RuntimeError(f"something was lost or failed: {self.books}")


@contextmanager
def crew(replicas: int, redis_url: str, site_url: str, terms: Terms) -> Iterator[Crew]:
    """Starts replicas and waits until all have reported; SIGTERM at the end, and their tallies."""
    with tempfile.TemporaryDirectory(prefix="threadmill-bench-") as name:
        folder = Path(name)
        environment = {
            "THREADMILL_REDIS_URL": redis_url,
            "THREADMILL_SOURCES": str(ROOT / "sources" / "bbs.toml"),
            "THREADMILL_BASE_URL": site_url,
            "THREADMILL_CONCURRENCY": str(terms.concurrency),
            "THREADMILL_PARTITIONS": str(terms.partitions),
            "THREADMILL_LOG_LEVEL": "WARNING",
            "BENCH_PAGING": terms.paging,
            "BENCH_FOLDER": str(folder),
        }
        config = Config(
            redis_url=redis_url,
            sources=(environment["THREADMILL_SOURCES"],),
            base_url=site_url,
            partitions=terms.partitions,
        )
        deployment = Deployment.connected(config)
        deployment.client.flushall()
        fleet = Fleet(environment, folder)
        this = Crew(deployment, fleet)
        try:
            fleet.scale("bench.replica", replicas)
            this.until(lambda books: books.workers == replicas, _START_S)
            yield this
        finally:
            fleet.stop()
            for line in _complaints(folder):
                print(line, file=sys.stderr)
        this.tallies = [Tally(**json.loads(file.read_text())) for file in folder.glob("*.json")]
        deployment.client.close()


def _complaints(folder: Path) -> list[str]:
    """What the replicas logged, but for what Scrapy says of itself when it starts."""
    lines = [line for log in folder.glob("*.log") for line in log.read_text().splitlines()]
    return [line for line in lines if "[warning" in line or "[error" in line or "Error" in line]
