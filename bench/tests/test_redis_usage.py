"""Calls are counted where they leave the worker, whatever they cause in the server."""

from redis import Redis

from bench.redis_server import redis_server
from bench.redis_usage import RedisUsageReader


def test_calls_and_commands() -> None:
    with redis_server() as port:
        # Given a reader, and a client that is connected
        reader = RedisUsageReader(f"redis://127.0.0.1:{port}/0")
        with Redis(port=port) as redis:
            redis.ping()
            before = reader.read()
            # When it sends a command, a transaction of two, and a script of two
            redis.set("a", 1)
            redis.pipeline().get("a").get("a").execute()
            redis.eval("redis.call('get', KEYS[1]) redis.call('get', KEYS[1])", 1, "a")
            used = reader.read() - before
    # Then these are three calls, and SET, MULTI, GET, GET, EXEC, EVAL, GET, GET in the server
    assert (used.calls, used.commands) == (3, 8)
    assert used.cpu_us >= 0
