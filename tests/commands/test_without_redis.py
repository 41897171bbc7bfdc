"""Commands whose Redis is away, or is not fit for use: one plain sentence, and an exit status that says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from commands.operator import Operator
from threadmill.ops.embedded import EmbeddedRedis, free_port

COMMANDS = [
    ("trace", "1"),
    ("peek", "detail"),
    ("workers",),
    ("export", "detail"),
    ("import", "detail", "-"),
    ("purge", "detail", "--yes"),
    ("requeue", "detail", "1"),
    ("jobs",),
    ("job", "4711"),
    ("events",),
    ("pause", "detail"),
    ("resume", "detail"),
    ("drain", "detail"),
    ("rate", "bbs", "1"),
    ("concurrency", "detail", "1"),
    ("priority", "4711", "1"),
]
LOOKING = [command for command in COMMANDS if command[0] != "import"]
"""Those that meet what is in Redis; the other has nothing to import."""


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_redis_that_does_not_answer_is_told(threadmill: Operator, command: tuple[str, ...]) -> None:
    threadmill.set("THREADMILL_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    ended = threadmill(*command)
    assert ended.status == 3
    [line] = ended.err.splitlines()
    assert "does not answer" in line
    assert "THREADMILL_REDIS_URL" in line


def test_a_redis_that_evicts_is_refused_by_all(threadmill: Operator, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", options=("--maxmemory-policy", "allkeys-lru")) as server:
        threadmill.set("THREADMILL_REDIS_URL", server.url)
        for command in COMMANDS:
            ended = threadmill(*command)
            assert (ended.status, len(ended.err.splitlines())) == (3, 1)
            assert "noeviction" in ended.err


def test_a_redis_that_is_too_old_is_refused_by_all(threadmill: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Redis that is older than what is needed, for more is needed than there is
    monkeypatch.setattr("threadmill.store.connection.MIN_VERSION", (99, 0))
    for command in COMMANDS:
        ended = threadmill(*command)
        assert (ended.status, len(ended.err.splitlines())) == (3, 1)
        assert "or newer is needed" in ended.err


@pytest.mark.parametrize("command", LOOKING, ids=[command[0] for command in LOOKING])
def test_keys_of_another_kind_are_told(threadmill: Operator, client: redis.Redis, command: tuple[str, ...]) -> None:
    # Given a Redis that somebody else uses under our names
    for name in (
        "tasks",
        "tasks:express",
        "requests",
        "delayed",
        "dead",
        "dead:index",
        "workers",
        "leases",
        "stats",
        "control",
    ):
        client.set(f"{{bbs.0}}:detail:{name}", "something else")
    for name in ("jobs", "jobs:4711", "jobs:events"):
        client.set(f"{{bbs.0}}:{name}", "something else")
    # When a command meets it; then it says so
    ended = threadmill(*command)
    assert ended.status == 3
    assert "WRONGTYPE" in ended.err
    assert "Traceback" not in ended.err
