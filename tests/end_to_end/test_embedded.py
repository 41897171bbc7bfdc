"""The Redis of our own: what it is after its power was cut."""

from __future__ import annotations

from pathlib import Path

import pytest

import threadmill.ops.embedded
from threadmill.ops.aof import growing_file
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import Client, connect, wait_until_ready
from threadmill.store.restart import mend_file
from waiting import wait_for

MOVE = "redis.call('RPUSH', 'queue', ARGV[1]); redis.call('INCR', 'accepted')"


@pytest.mark.parametrize("ending", [b"RPUSH", b"INCR", b"EXEC"])
def test_half_a_transaction_comes_back_at_no_restart(tmp_path: Path, ending: bytes) -> None:
    # Given a transaction, and then another of which a power cut left a part, to the middle of a command
    redis = EmbeddedRedis(tmp_path)
    client = connect(redis.url)
    started(redis, client).eval(MOVE, 0, "kept")
    client.eval(MOVE, 0, "cut off")
    redis.kill()
    file = growing_file(tmp_path)
    file.write_bytes(file.read_bytes()[: file.read_bytes().rindex(ending) + 2])
    # When Redis is started, works, and is started again
    assert held(started(redis, client)) == ([b"kept"], b"1")
    client.eval(MOVE, 0, "later")
    redis.stop()
    # Then nothing of it is there
    assert held(started(redis, client)) == ([b"kept", b"later"], b"2")
    redis.stop()


def test_a_redis_that_is_not_ours_is_told_to_write_its_file_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a Redis that starts with half a transaction in its file, as any other than ours may
    monkeypatch.setattr(threadmill.ops.embedded, "drop_half_transaction", lambda _: 0)
    redis = EmbeddedRedis(tmp_path)
    client = connect(redis.url)
    started(redis, client).eval(MOVE, 0, "kept")
    client.eval(MOVE, 0, "cut off")
    redis.kill()
    file = growing_file(tmp_path)
    file.write_bytes(file.read_bytes()[: file.read_bytes().rindex(b"INCR") + 2])
    started(redis, client)
    # When a worker comes, and another
    assert mend_file(client)
    wait_for(lambda: client.info("persistence")["aof_last_rewrite_time_sec"] >= 0, what="the file to be written")
    assert not mend_file(client)
    # Then nothing of it is there after the next start
    client.eval(MOVE, 0, "later")
    redis.kill()
    assert held(started(redis, client)) == ([b"kept", b"later"], b"2")
    redis.stop()


def test_what_is_whole_is_left_as_it_is(tmp_path: Path) -> None:
    # Given a whole transaction, and a command of no transaction after it
    redis = EmbeddedRedis(tmp_path)
    client = connect(redis.url)
    started(redis, client).eval(MOVE, 0, "kept")
    client.incr("accepted")
    redis.kill()
    before = growing_file(tmp_path).read_bytes()
    # When it is started again
    # Then all is there
    assert held(started(redis, client)) == ([b"kept"], b"2")
    assert growing_file(tmp_path).read_bytes() == before
    redis.stop()


def started(redis: EmbeddedRedis, client: Client) -> Client:
    redis.start()
    wait_until_ready(client, redis.url, wait_ms=10_000)
    return client


def held(client: Client) -> tuple[object, object]:
    return client.lrange("queue", 0, -1), client.get("accepted")
