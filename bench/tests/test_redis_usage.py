"""Calls are counted where they leave the worker, whatever they cause in the server."""

import asyncio

from redis import Redis
from redis.asyncio import Redis as AsyncRedis

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


async def _command_and_transaction(port: int) -> None:
    async with AsyncRedis(port=port) as redis:
        await redis.set("a", 1)
        async with redis.pipeline() as pipeline:
            pipeline.get("a")
            pipeline.get("a")
            await pipeline.execute()


def test_asyncio_clients_count_too() -> None:
    with redis_server() as port:
        # Given a reader, and what it costs an asyncio client to connect
        reader = RedisUsageReader(f"redis://127.0.0.1:{port}/0")
        before = reader.read()
        asyncio.run(_connect(port))
        connecting = reader.read() - before
        # When another connects and sends a command and a transaction
        before = reader.read()
        asyncio.run(_command_and_transaction(port))
        used = reader.read() - before
    # Then these are two calls more, and SET, MULTI, GET, GET, EXEC against a PING in the server
    assert used.calls - connecting.calls == 2 - 1
    assert used.commands - connecting.commands == 5 - 1


async def _connect(port: int) -> None:
    async with AsyncRedis(port=port) as redis:
        await redis.ping()
