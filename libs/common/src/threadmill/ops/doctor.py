"""`threadmill doctor`: what is set, and what is wrong with it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadmill.model.boards_file import read_boards
from threadmill.model.config import Config, without_password
from threadmill.model.errors import ThreadmillError
from threadmill.model.source import configured_sources, lanes_of
from threadmill.ops.durability import ERROR, OK, WARNING, Durability, Finding
from threadmill.ops.embedded import find_server
from threadmill.ops.trouble import unreadable
from threadmill.store.connection import STORE_FAILURES, Client, connect, wait_until_ready
from threadmill.store.soundness import faults


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found, and what the deployment promises by it."""

    findings: list[Finding]
    promise: str

    @property
    def ok(self) -> bool:
        return all(finding.level != ERROR for finding in self.findings)


def examine(config: Config) -> Examination:
    """Look at everything a deployment rests on; never raises for what it finds."""
    findings = [
        Finding("versions", OK, ", ".join(_versions())),
        _try("sources", lambda: ", ".join(f"{s.name} at {s.base_url}" for s in configured_sources(config))),
        _try("boards", lambda: _boards(config)),
        _try("embedded redis", find_server, failing=WARNING),
    ]
    url = config.redis_url.get_secret_value()
    client = connect(url)
    try:
        durability = _durability(client, url)
        findings += [Finding("redis", OK, f"{without_password(url)} answers"), *durability.findings()]
        findings += _keys(config, client)
        return Examination(findings, durability.promise())
    except (ThreadmillError, *STORE_FAILURES) as error:
        findings.append(Finding("redis", ERROR, str(error)))
        return Examination(findings, "none can be given while Redis cannot be asked")
    finally:
        client.close()


def _boards(config: Config) -> str:
    if not config.boards:
        return "no boards file is set"
    boards = read_boards(Path(config.boards), {source.name: source for source in configured_sources(config)})
    return f"{len(boards):,} in {config.boards}"


def _durability(client: Client, url: str) -> Durability:
    try:
        return Durability.of(client)
    except STORE_FAILURES:
        wait_until_ready(client, url, wait_ms=0)  # says it in plain words
        raise


def _keys(config: Config, client: Client) -> Iterator[Finding]:
    """What somebody else wrote under our keys, or a release to come did."""
    try:
        lanes = [lane for source in configured_sources(config) for lane in lanes_of(source, config)]
        found = faults(client, lanes)
        yield Finding("keys", ERROR, unreadable(found)) if found else Finding("keys", OK, "all can be read")
    except ThreadmillError:  # sources that cannot be read have their own finding
        return
    except STORE_FAILURES as error:
        yield Finding("keys", WARNING, f"cannot be looked at: {error}")


def _try(subject: str, look: Callable[[], str], failing: str = ERROR) -> Finding:
    try:
        return Finding(subject, OK, look())
    except ThreadmillError as error:
        return Finding(subject, failing, str(error))


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    for package in ("threadmill", "scrapy", "redis", "twisted"):
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} not installed"
