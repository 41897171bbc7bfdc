"""Bad input and bad surroundings: a dead letter with its bytes, or a plain sentence; the worker lives on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.ops.embedded import EmbeddedRedis, free_port
from threadmill.store.connection import connect
from threadmill.store.letters import dead_letters
from waiting import wait_for

BAD_TASKS = {
    b"{not json": "not-json",
    b"\xff\xfe\x00": "not-json",
    b"[1, 2]": "malformed",
    b'{"key": "1", "v": 99}': "unknown-version",
    b'{"key": "1", "stage": "author"}': "unknown-stage",
    b'{"key": "1", "stage": "list"}': "wrong-stage",
    b'{"key": "1", "source": "elsewhere"}': "unknown-source",
    b'{"key": "../../etc/passwd"}': "refused-key",
    b'{"key": "http://127.0.0.1/"}': "refused-key",
    b'{"key": "1", "surprise": true}': "malformed",
    b'{"priority": 3}': "malformed",
}
DEATH = ("reason", "at", "deliveries", "failures", "error")


def test_tasks_that_cannot_be_read_are_parked_with_their_bytes(tmp_path: Path) -> None:
    with pipeline(tmp_path, forum=["--forums", "1", "--pages-per-forum", "1"]) as rig:
        # Given a detail collector, and bad tasks pushed from outside, with a good one behind them
        rig.start("detail")
        keys, client = rig.lane.stage("detail"), rig.deployment.client
        for body in BAD_TASKS:
            client.xadd(keys.tasks, {"task": body})
        client.xadd(keys.tasks, {"nonsense": "fields"})
        client.xadd(keys.tasks, {"task": '{"key": "100001"}'})
        # When it has seen them all
        wait_for(lambda: rig.books("detail")["dead"] == len(BAD_TASKS) + 1, what="the dead letters")
        wait_for(lambda: rig.books("detail")["done"] == 1, what="the good task")
        # Then each is parked under its reason, with its very bytes
        letters = list(dead_letters(client, rig.lane, "detail"))
        assert {letter.body: letter.reason for letter in letters if letter.body in BAD_TASKS} == BAD_TASKS
        assert [letter.body for letter in letters if letter.body not in BAD_TASKS] == [b"nonsense=fields"]
        # And the worker is the same process, and the books balance
        assert len(rig.fleet.pids("detail_collector")) == 1
        assert rig.fleet.restarts == 0
        books = rig.books("detail")
        assert books["accepted"] == books["done"] + books["dead"] == len(BAD_TASKS) + 2
        # And an operator can list, show, replay and drop them
        listed = [json.loads(line) for line in dead(rig, "list", "detail", "--json").splitlines()]
        assert len(listed) == len(BAD_TASKS) + 1
        one = listed[0]
        assert json.loads(dead(rig, "show", "detail", "--id", one["id"], "--json")) == one
        assert dead(rig, "replay", "detail", "--id", one["id"], "--json") == '{"replayed": 1}\n'
        wait_for(lambda: rig.books("detail")["dead"] == len(BAD_TASKS) + 1, what="it to be parked again")
        assert dead(rig, "replay", "detail", "--id", one["id"], "--json") == '{"replayed": 0}\n'
        [again] = [
            letter
            for line in dead(rig, "list", "detail", "--json").splitlines()
            if (letter := json.loads(line))["history"]
        ]
        assert (again["body"], again["history"]) == (one["body"], [{name: one[name] for name in DEATH}])
        assert f"before  {one['at']}  {one['reason']}" in dead(rig, "show", "detail", "--id", again["id"])
        assert dead(rig, "drop", "detail", "--reason", "refused-key", "--yes", "--json") == '{"dropped": 2}\n'
        assert rig.books("detail")["dead"] == len(BAD_TASKS) - 1
        books = rig.books("detail")
        assert books["accepted"] == books["done"] + books["dead"]


def dead(rig: Pipeline, *arguments: str) -> str:
    """What `threadmill dead` prints on this deployment."""
    command = [sys.executable, "-m", "threadmill", "dead", *arguments]
    environment = {**os.environ, **rig.environment()}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


SERVICES = [*(stage.service for stage in STAGES.values()), "item_writer", "dispatcher"]


def run_service(service: str, url: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "THREADMILL_REDIS_URL": url, "THREADMILL_SOURCES": "sources/bbs.toml", **settings}
    return subprocess.run(
        [sys.executable, "-m", service], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_wrong_password_is_one_plain_sentence(service: str, tmp_path: Path) -> None:
    # Given a Redis with a password
    with EmbeddedRedis(tmp_path / "redis", password="right") as server:
        # When the service comes with another one
        ended = run_service(service, server.url.replace("right", "wrong-secret"))
    # Then it says so in one line, without the password, and fails at once
    assert ended.returncode == 3
    [line] = ended.stderr.strip().splitlines()
    assert "refused us" in line
    assert "THREADMILL_REDIS_URL" in line
    assert "wrong-secret" not in ended.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_a_redis_that_evicts_is_refused(service: str, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", options=("--maxmemory-policy", "allkeys-lru")) as server:
        ended = run_service(service, server.url)
    assert ended.returncode == 3
    [line] = ended.stderr.strip().splitlines()
    assert "allkeys-lru" in line
    assert "noeviction" in line


@pytest.mark.parametrize("service", SERVICES)
def test_a_redis_that_is_down_is_waited_for_up_to_a_set_time(service: str) -> None:
    # Given nothing that listens
    started = time.monotonic()
    ended = run_service(service, f"redis://127.0.0.1:{free_port()}/0", THREADMILL_REDIS_WAIT_MS="1500")
    # Then the service says that it waits, and gives up in plain words when the time is over
    assert ended.returncode == 3
    assert time.monotonic() - started >= 1.5
    lines = ended.stderr.strip().splitlines()
    assert any("waiting" in line for line in lines[:-1])
    assert "does not answer" in lines[-1]
    assert "Traceback" not in ended.stderr


def test_a_redis_that_comes_late_is_used(tmp_path: Path) -> None:
    # Given a collector that was started before its Redis
    server = EmbeddedRedis(tmp_path / "redis")
    environment = {**os.environ, "THREADMILL_REDIS_URL": server.url, "THREADMILL_SOURCES": "sources/bbs.toml"}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "detail_collector"], env=environment, stderr=log)
    try:
        wait_for(lambda: "waiting" in (tmp_path / "log").read_text(), what="the collector to wait")
        # When Redis comes
        with server:
            client = connect(server.url)
            # Then the collector is at work
            wait_for(lambda: client.zcard("{bbs.0}:detail:workers") == 1, what="the worker")
            process.terminate()
            assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_a_wrong_setting_is_named_and_its_value_is_not_shown() -> None:
    ended = run_service("detail_collector", "redis://127.0.0.1:1/0", THREADMILL_CONCURRENCY="sixteen-secrets")
    assert ended.returncode == 2
    assert "THREADMILL_CONCURRENCY" in ended.stderr
    assert "sixteen-secrets" not in ended.stderr
