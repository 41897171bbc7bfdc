"""A workshop for every test of a verb, whose books are checked when the test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from store.workshop import Workshop


@pytest.fixture
def shop(client: redis.Redis) -> Iterator[Workshop]:
    """The detail stage of lane bbs.0; at the end its books must be what is really there."""
    shop = Workshop(client)
    yield shop
    shop.audit()
