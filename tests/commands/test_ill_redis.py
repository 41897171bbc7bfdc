"""Every command against a Redis that is not as it should be: one plain sentence, and an exit status that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from commands.operator import Answer, Operator
from commands.rows import ROWS, Row, asking, names
from commands.servers import LOADING, listener
from threadmill.ops.embedded import EmbeddedRedis, free_port

NOT_UP = [row for row in ROWS if not row.line.startswith("up")]


def test_every_command_has_a_row() -> None:
    lines = {row.line for row in ROWS}
    assert [name for name in names() if not any(f"{line} ".startswith(f"{name} ") for line in lines)] == []


@pytest.fixture
def file(threadmill: Operator, tmp_path: Path, client: redis.Redis) -> str:
    """What `export` writes of an empty stage: `import` can read it."""
    path = tmp_path / "empty.jsonl"
    assert threadmill("export", "detail", str(path)).status == 0
    return str(path)


def test_nothing_in_redis_is_said_in_words(threadmill: Operator, client: redis.Redis, file: str) -> None:
    for row in NOT_UP:
        client.flushall()
        answer = threadmill(*row.arguments(file))
        assert answer.status == row.empty, row.line
        assert row.words in answer.out + answer.err, row.line


@contextmanager
def configured(client: redis.Redis, **settings: str) -> Iterator[None]:
    before = {name: client.config_get(name)[name] for name in settings}
    for name, value in settings.items():
        client.config_set(name, value)
    try:
        yield
    finally:
        for name, value in reversed(before.items()):
            client.config_set(name, value)


@pytest.mark.parametrize(
    ("ill", "words"),
    [
        ("down", ("does not answer", "Connection refused", "start it, or set THREADMILL_REDIS_URL")),
        ("nowhere", ("does not answer", "no-such-host.invalid")),
        ("silent", ("does not answer", "Timeout")),
        ("loading", ("is loading its data",)),
        ("no password", ("refused us", "set user and password in THREADMILL_REDIS_URL")),
        ("wrong password", ("refused us", "set user and password in THREADMILL_REDIS_URL")),
        ("no rights", ("refused us", "info")),
        ("evicting", ("maxmemory-policy allkeys-lru", "Set it to noeviction")),
        ("cluster", ("is a Redis Cluster, which is not supported",)),
        ("no url", ("THREADMILL_REDIS_URL",)),
    ],
)
def test_a_redis_that_cannot_be_used_is_one_sentence(
    threadmill: Operator, client: redis.Redis, file: str, tmp_path: Path, ill: str, words: tuple[str, ...]
) -> None:
    # Given a Redis that is ill in some way
    threadmill.set("THREADMILL_REDIS_WAIT_MS", "1")
    with made_ill(ill, client, tmp_path) as url:
        threadmill.set("THREADMILL_REDIS_URL", url)
        # When an operator says any command
        for row in asking():
            refused(threadmill(*row.arguments(file)), row, words, ill)


def refused(answer: Answer, row: Row, words: tuple[str, ...], ill: str) -> None:
    """Then it ends with one sentence, nothing on standard output, and a status that says Redis (or, here, settings)."""
    if ill == "no url":
        row = replace(row, down=2)
    assert answer.status == row.down, (row.line, answer)
    told = answer.err
    if row.line == "doctor" and ill != "no url":
        assert "error   " in answer.out
        assert "promise: none" in answer.out
        told = answer.out if "promise: none can be given" in answer.out else " ".join(words)  # it has words of its own
    else:
        assert answer.out == "", row.line
        assert answer.err.count("\n") == 1, answer.err
    for word in words:
        assert word in told, row.line
    assert "wrong-secret" not in answer.out + answer.err


@contextmanager
def made_ill(ill: str, client: redis.Redis, folder: Path) -> Iterator[str]:
    kwargs = client.connection_pool.connection_kwargs
    here = f"127.0.0.1:{kwargs['port']}/0"
    if ill == "down":
        yield f"redis://127.0.0.1:{free_port()}/0"
    elif ill == "nowhere":
        yield "redis://no-such-host.invalid:6379/0"
    elif ill in ("silent", "loading"):
        with listener(LOADING if ill == "loading" else b"") as port:
            yield f"redis://127.0.0.1:{port}/0?socket_timeout=0.02"
    elif ill in ("no password", "wrong password"):
        with EmbeddedRedis(folder / "guarded", password="right", options=("--appendonly", "no")) as server:
            yield server.url.replace(":right@", ":wrong-secret@" if ill == "wrong password" else "")
    elif ill == "no rights":
        client.execute_command("ACL SETUSER guest on >wrong-secret ~* +@all -info")
        yield f"redis://guest:wrong-secret@{here}"
        client.execute_command("ACL DELUSER guest")
    elif ill == "evicting":
        with configured(client, **{"maxmemory-policy": "allkeys-lru"}):
            yield f"redis://{here}"
    elif ill == "cluster":
        server = EmbeddedRedis(folder / "cluster", options=("--cluster-enabled", "yes", "--appendonly", "no"))
        server.port -= 10_000 * (server.port > 55_000)  # a cluster listens 10,000 above it, too
        with server:
            yield server.url
    else:
        yield "redis://127.0.0.1:notaport/0"


def test_a_redis_that_is_too_old_is_refused(threadmill: Operator, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Redis that is older than what is needed, for more is needed than there is (chaos has one that really is)
    monkeypatch.setattr("threadmill.store.connection.MIN_VERSION", (99, 0))
    for row in asking():
        if row.line != "doctor":
            refused(threadmill(*row.arguments(file)), row, ("is version 6", "or newer is needed"), "old")


@pytest.mark.parametrize(("ill", "words"), [("full", "is full and takes nothing new"), ("replica", "is a replica")])
def test_who_only_looks_is_answered_and_who_writes_is_told_why_not(
    threadmill: Operator, client: redis.Redis, file: str, ill: str, words: str
) -> None:
    # Given a Redis that takes no work
    if ill == "full":
        client.config_set("maxmemory", "1")
    else:
        client.replicaof("127.0.0.1", str(free_port()))
    try:
        told = set()
        for row in NOT_UP:
            answer = threadmill(*row.arguments(file))
            # Then what only looks says what there is
            if answer.status != 3:
                assert answer.status == row.empty, (row.line, answer)
                continue
            # And what writes says why it could not
            assert words in answer.err, row.line
            assert answer.err.count("\n") == 1
            told.add(row.line.split()[0])
    finally:
        client.config_set("maxmemory", "0")
        client.replicaof("NO", "ONE")
    assert {"submit", "requeue", "pause"} <= told
    assert not {"status", "jobs", "events", "trace", "peek", "workers", "export"} & told


def test_as_a_process_it_says_the_same() -> None:
    # Given nothing that listens
    settings = {**os.environ, "THREADMILL_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}
    # When a command runs as the shell would run it
    ended = subprocess.run(
        [sys.executable, "-m", "threadmill.ops.app", "status", "--json"],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    # Then it is the same sentence and status
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("threadmill: Redis at redis://127.0.0.1:")
    assert ended.stderr.count("\n") == 1
