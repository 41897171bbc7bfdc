"""`threadmill doctor`: what is set, and what is wrong with it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from threadmill.model.config import Config, without_password
from threadmill.model.errors import ThreadmillError
from threadmill.model.source import configured_sources
from threadmill.ops.embedded import find_server
from threadmill.store.connection import STORE_FAILURES, connect, wait_until_ready


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `level` is ok, warning or error."""

    subject: str
    level: str
    message: str


def examine(config: Config) -> Iterator[Finding]:
    """Look at everything a deployment rests on; never raises for what it finds."""
    yield Finding("versions", "ok", ", ".join(_versions()))
    yield _try("sources", lambda: ", ".join(f"{s.name} at {s.base_url}" for s in configured_sources(config)))
    yield _try("embedded redis", find_server, failing="warning")
    yield from _redis(config)


def _redis(config: Config) -> Iterator[Finding]:
    url = config.redis_url.get_secret_value()
    client = connect(url)
    try:
        wait_until_ready(client, url, wait_ms=0)
        server, persistence = client.info("server"), client.info("persistence")
        memory = client.info("memory")
        yield Finding("redis", "ok", f"{without_password(url)} answers, version {server.get('redis_version')}")
        if persistence.get("aof_enabled"):
            yield Finding("persistence", "ok", "append-only file is on")
        else:
            yield Finding(
                "persistence",
                "warning",
                "append-only file is off: a restart of Redis loses work; set appendonly yes",
            )
        limit = memory.get("maxmemory", 0)
        used = f"{memory.get('used_memory', 0) / 1e6:.0f} MB used"
        yield Finding("memory", "ok", f"{used}, limit {limit / 1e6:.0f} MB" if limit else f"{used}, no limit set")
    except (ThreadmillError, *STORE_FAILURES) as error:
        yield Finding("redis", "error", str(error))
    finally:
        client.close()


def _try(subject: str, look: Callable[[], str], failing: str = "error") -> Finding:
    try:
        return Finding(subject, "ok", look())
    except ThreadmillError as error:
        return Finding(subject, failing, str(error))


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    for package in ("threadmill", "scrapy", "redis", "twisted"):
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} not installed"
