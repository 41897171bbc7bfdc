"""The Redis of our own: what it is after its power was cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from threadmill.ops.aof import growing_file
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import Client, connect, wait_until_ready

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
