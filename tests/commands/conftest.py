"""An operator, and a stage for them to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from commands.operator import Operator
from store.workshop import Workshop
from threadmill.ops.embedded import EmbeddedRedis


@pytest.fixture
def shop(client: redis.Redis) -> Iterator[Workshop]:
    """The detail stage of lane bbs.0; at the end its books must be what is really there."""
    shop = Workshop(client)
    yield shop
    shop.audit()


@pytest.fixture
def threadmill(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    redis_server: EmbeddedRedis,
    client: redis.Redis,
) -> Operator:
    """An operator of an empty Redis."""
    return Operator(monkeypatch, capsys, redis_server.url)
