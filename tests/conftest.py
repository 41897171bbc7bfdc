"""Shared fixtures: a real Redis for every test that touches Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import connect

pytest.register_assert_rewrite("store.census")  # before any test imports it


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """One server for the whole run; a missing one is a failure, never a skip."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis"), options=("--appendonly", "no")) as server:
        yield server


@pytest.fixture
def client(redis_server: EmbeddedRedis) -> Iterator[redis.Redis]:
    """A client of an empty database."""
    connection = connect(redis_server.url)
    connection.flushall()
    yield connection
    connection.close()
