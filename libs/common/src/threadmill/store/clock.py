"""Redis's clock: the one time that all processes agree on."""

from __future__ import annotations

from typing import Any

import redis

from threadmill.store.calls import Command, run


def _ms(reply: Any) -> int:
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


CLOCK: Command[int] = Command(("TIME",), _ms)
"""The time in ms since 1970, to travel with other calls."""


def clock_ms(client: redis.Redis) -> int:
    """The time now, in ms since 1970."""
    return run(client, CLOCK)
