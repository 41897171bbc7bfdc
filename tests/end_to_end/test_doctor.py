"""`threadmill doctor` at real servers, each set in another way: what it finds, and what it says is promised."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from threadmill.model.config import Config
from threadmill.ops.doctor import Examination, examine
from threadmill.ops.durability import Durability
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import connect
from waiting import wait_for

NOTHING_LOST = "nothing acknowledged is lost, even by a power cut"
TWO_SECONDS = (
    "a power cut or a crash of Redis may lose what was submitted in the last 2 seconds; everything else is done again"
)


@pytest.mark.parametrize(
    ("options", "levels", "promise"),
    [
        ("--appendfsync always", {"appendonly": "ok", "appendfsync": "ok", "maxmemory-policy": "ok"}, NOTHING_LOST),
        ("--appendfsync everysec", {"appendfsync": "ok", "save": "ok", "replicas": "ok"}, TWO_SECONDS),
        ("--appendfsync no", {"appendfsync": "warning"}, "in the last 30 seconds or longer"),
        (
            "--appendfsync always --no-appendfsync-on-rewrite yes",
            {"appendfsync": "ok", "no-appendfsync-on-rewrite": "warning"},
            "in the time a rewrite takes",
        ),
        ("--appendonly no --save 60 1", {"appendonly": "warning", "save": "ok"}, "since the last snapshot"),
        ("--appendonly no", {"appendonly": "error"}, "a restart of Redis loses all work"),
        ("--maxmemory-policy allkeys-lru", {"maxmemory-policy": "error"}, "none: this Redis must not be used"),
        ("--maxmemory 1mb", {"maxmemory": "warning"}, TWO_SECONDS),
        ("--maxmemory 1gb", {"maxmemory": "ok"}, TWO_SECONDS),
        ("--cluster-enabled yes", {"cluster": "error"}, "none: this Redis must not be used"),
        ("--replicaof 127.0.0.1 1", {"replicas": "error"}, "none: this Redis must not be used"),
    ],
)
def test_each_setting_is_found_and_changes_the_promise(
    tmp_path: Path, options: str, levels: dict[str, str], promise: str
) -> None:
    # Given a server that is set so
    redis = EmbeddedRedis(tmp_path, options=tuple(options.split()))
    redis.port -= 10_000 * (redis.port > 55_000)  # a cluster listens 10,000 above it, too
    with redis:
        # When the doctor looks
        found = looked_at(redis.url)
    # Then it finds that, and says what follows from it
    assert {subject: level for subject, level in levels_of(found).items() if subject in levels} == levels
    assert promise in found.promise
    assert found.ok == ("error" not in levels.values())


@pytest.mark.parametrize(("least", "level"), [(0, "warning"), (1, "ok")])
def test_a_replica_is_seen_and_what_a_failover_loses(tmp_path: Path, least: int, level: str) -> None:
    # Given a server with a replica
    with EmbeddedRedis(tmp_path / "master", options=("--min-replicas-to-write", str(least))) as redis:
        follow = ("--replicaof", "127.0.0.1", str(redis.port), "--appendonly", "no")
        with EmbeddedRedis(tmp_path / "replica", options=follow):
            client = connect(redis.url)
            wait_for(lambda: client.info("replication")["connected_slaves"], what="the replica")
            # Then the doctor says what becomes of the promise when it takes over
            found = looked_at(redis.url)
            client.close()
    assert levels_of(found)["replicas"] == level
    assert found.promise.endswith("a failover loses what its replica had not yet been sent")


def test_what_a_managed_redis_hides_is_said(tmp_path: Path) -> None:
    # Given a server whose CONFIG is not for us
    with EmbeddedRedis(tmp_path) as redis:
        client = connect(redis.url)
        client.execute_command("ACL SETUSER tenant on >secret ~* &* +@all -config")
        client.close()
        # When the doctor looks
        found = looked_at(redis.url.replace("//", "//tenant:secret@"))
    # Then it tells from INFO what it can, and what cannot be seen
    levels = levels_of(found)
    assert (levels["appendonly"], levels["appendfsync"], levels["config"]) == ("ok", "warning", "warning")
    assert "a time that cannot be seen (appendfsync)" in found.promise
    assert found.ok
    assert "secret" not in str(found)


def test_a_disk_that_fails_is_an_error(tmp_path: Path) -> None:
    # Given a server that could not write its last snapshot
    with EmbeddedRedis(tmp_path, options=("--save", "3600", "1")) as redis:
        client = connect(redis.url)
        in_the_way = tmp_path / "dump.rdb"
        in_the_way.mkdir()
        client.bgsave()
        wait_for(lambda: client.info()["rdb_last_bgsave_status"] == "err", what="the snapshot to fail")
        # Then it is an error: it takes no work. Where it would take some, it is a warning
        assert levels_of(looked_at(redis.url))["rdb_last_bgsave_status"] == "error"
        client.config_set("stop-writes-on-bgsave-error", "no")
        assert levels_of(looked_at(redis.url))["rdb_last_bgsave_status"] == "warning"
        client.close()
        in_the_way.rmdir()  # it would not end without its snapshot


def test_an_old_server_is_an_error() -> None:
    # Given what a server of 6.0 says of itself
    old = Durability({"redis_version": "6.0.16", "aof_enabled": 1}, {"appendfsync": "always"})
    # Then it must not be used
    assert [finding.subject for finding in old.findings() if finding.level == "error"] == ["version"]
    assert old.promise().startswith("none")


def test_the_command_ends_with_the_promise_and_tells_scripts_the_same(tmp_path: Path) -> None:
    # Given a good server
    with EmbeddedRedis(tmp_path, fsync="always") as redis:
        # Then people and scripts are told the same
        people, scripts = doctor(redis.url), doctor(redis.url, "--json")
    assert (people.returncode, scripts.returncode) == (0, 0)
    assert people.stdout.splitlines()[-1] == f"promise: {NOTHING_LOST}"
    told = json.loads(scripts.stdout)
    assert (told["ok"], told["promise"]) == (True, NOTHING_LOST)
    # And once it has gone, that it has
    gone = doctor(redis.url)
    assert gone.returncode == 1
    assert gone.stdout.splitlines()[-1] == "promise: none can be given while Redis cannot be asked"
    assert "does not answer" in " ".join(gone.stdout.split())


def looked_at(url: str) -> Examination:
    return examine(Config.model_validate({"redis_url": url, "sources": "sources/bbs.toml"}))


def levels_of(found: Examination) -> dict[str, str]:
    return {finding.subject: finding.level for finding in found.findings}


def doctor(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "THREADMILL_REDIS_URL": url, "THREADMILL_SOURCES": "sources/bbs.toml"}
    command = [sys.executable, "-m", "threadmill.ops.app", "doctor", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
