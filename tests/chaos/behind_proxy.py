"""The rig whose services reach Redis through a proxy, and what the tests of the network ask of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chaos.oracle import assert_whole, downloaded_twice
from chaos.proxy import Proxy
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from waiting import wait_for

CONCURRENCY = 8
SMALL = ["--forums", "3", "--pages-per-forum", "3", "--posts-per-page", "10"]
SLOW = ["--latency-ms", "150", "--jitter-ms", "80"]


@contextmanager
def behind_proxy(folder: Path, forum: list[str], *, seed: int = 0, **settings: Any) -> Iterator[tuple[Pipeline, Proxy]]:
    """A pipeline whose services reach Redis through a proxy; what the test asks of Redis goes directly."""
    settings.setdefault("concurrency", CONCURRENCY)
    with pipeline(folder, forum=forum, **settings) as rig, Proxy(rig.redis.port, seed=seed) as proxy:
        rig.fleet.environment["THREADMILL_REDIS_URL"] = proxy.url
        try:
            yield rig, proxy
        finally:
            lost = dict(sorted(proxy.hit.items()))
            tell(f"proxy: {proxy.accepted} connections, {proxy.resets} reset, lost or late {lost}")
            proxy.calm()
            rig.fleet.stop()


def start(rig: Pipeline, replicas: int = 1, forums: int = 10) -> str:
    """Start the fleet and a crawl of all forums; answers the job, once every stage is at work."""
    rig.start()
    for stage in STAGES:
        rig.scale(stage, replicas)
    job = rig.submit("list", [str(n) for n in range(1, forums + 1)]).job
    wait_for(lambda: rig.books("comment")["done"] > 10, 60, what="the crawl to be under way")
    return job


def nobody_left(rig: Pipeline) -> None:
    """No process ended by itself."""
    deaths = rig.fleet.tend()
    assert not deaths, deaths
    assert not rig.fleet.restarts


def drained(rig: Pipeline, job: str, seconds: float = 240) -> int:
    """Wait for the end and ask the oracle; answers how many downloads were one too many."""
    began = time.monotonic()
    rig.wait_until_done(job, seconds)
    settled = time.monotonic() - began
    assert_whole(rig, job)
    nobody_left(rig)
    twice = downloaded_twice(rig)
    done = sum(rig.job(job).done.values())
    tell(f"whole: {done} pages done, {twice} downloaded again, {settled:.1f} s from the last fault to the end")
    return twice


def tell(text: str) -> None:
    """A figure of the report; pytest shows it with a failure, and always with `-rP`."""
    print(text)  # noqa: T201
