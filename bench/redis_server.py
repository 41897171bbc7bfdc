"""A Redis server of the benchmark's own: nothing on disk, nothing evicted, gone at the end of the block."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from threadmill.ops.embedded import EmbeddedRedis

_IN_MEMORY = ("--appendonly", "no", "--loglevel", "warning")


@contextmanager
def redis_server() -> Iterator[int]:
    """Starts a server on a free loopback port, waits until it listens, and gives the port."""
    with (
        tempfile.TemporaryDirectory(prefix="threadmill-bench-redis-") as folder,
        EmbeddedRedis(Path(folder), options=_IN_MEMORY) as server,
    ):
        yield server.port
