"""A stage under test: a site, a Redis, and a plain Scrapy spider with the add-on as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawl.answers import ANSWERS
from crawl.crawls import SIDES, Crawls
from crawl.site import RawSite, Site
from crawl.spiders import LANE, STAGE
from threadmill.model.task import Task
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.calls import run
from threadmill.store.connection import Client
from threadmill.store.letters import DeadLetter, dead_letters
from threadmill.store.stage import StageStore
from threadmill.store.status import Books, run_books

TESTS = Path(__file__).parents[1]


@dataclass
class StageUnderTest:
    """What tests do with it."""

    client: Client
    redis_url: str
    site: Site
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    store: StageStore = field(default_factory=lambda: StageStore(LANE, STAGE))

    def submit(self, *paths: str) -> None:
        tasks = [Task(STAGE.name, LANE.source, path) for path in paths]
        run(self.client, self.store.submit(tasks, token=os.urandom(8).hex()))

    def start(
        self,
        does: str = "item",
        *,
        starting: bool = False,
        module: str = "crawl.spiders",
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> subprocess.Popen[str]:
        """Start a worker of a module's spider; it ends by itself after a second without work."""
        order = {"site": self.site.url, "does": does, "starting": starting, "settings": settings}
        process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(order)],
            env={
                **os.environ,
                "PYTHONPATH": str(TESTS),
                "THREADMILL_REDIS_URL": self.redis_url,
                "THREADMILL_IDLE_CLOSE_MS": "1000",
                "THREADMILL_RETRY_BASE_MS": "50",
                "THREADMILL_LEASE_TTL_MS": "3000",
                **(environment or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, does: str = "item", **how: Any) -> str:
        """Run a worker until it has nothing more to do; its output."""
        process = self.start(does, **how)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output

    @property
    def books(self) -> Books:
        return run_books(self.client, LANE, STAGE.name)

    def items(self) -> list[dict[str, Any]]:
        """Everything committed, sorted by path."""
        entries: Any = self.client.xrange(LANE.items)
        items = [item for _, fields in entries for item in orjson.loads(fields[b"i"])]
        return sorted(items, key=lambda item: item["path"])

    def paths(self) -> list[str]:
        return [item["path"] for item in self.items()]

    def stat(self, name: str) -> int:
        return int(self.client.hget(self.store.keys.stats, name) or 0)

    def dead(self) -> list[DeadLetter]:
        return list(dead_letters(self.client, LANE, STAGE.name))


@pytest.fixture
def stage(client: Client, redis_server: EmbeddedRedis) -> Iterator[StageUnderTest]:
    with Site() as site:
        under_test = StageUnderTest(client, redis_server.url, site)
        yield under_test
        site.release.set()
        for process in under_test.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def crawling() -> Iterator[dict[str, Crawls]]:
    processes = {side: Crawls(side) for side in SIDES}
    yield processes
    for process in processes.values():
        process.end()


@pytest.fixture(params=sorted(SIDES))
def crawl(request: pytest.FixtureRequest, crawling: dict[str, Crawls]) -> Crawls:
    """Both downloaders, in turn: what a test says holds for Scrapy's own and for ours."""
    return crawling[request.param]


@pytest.fixture
def ours(crawling: dict[str, Crawls]) -> Crawls:
    """Our downloader, where it is not Scrapy's: each such test says why."""
    return crawling["threadmill"]


@pytest.fixture(scope="session")
def raw() -> Iterator[RawSite]:
    with RawSite(ANSWERS) as site:
        yield site
