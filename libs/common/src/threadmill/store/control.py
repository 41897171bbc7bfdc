"""What operators say of a stage while it runs: fields of its control hash, which every lease call reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from threadmill.model.keys import Lane
from threadmill.store.calls import Command, run_all
from threadmill.store.connection import Client

PAUSED, DRAINING, RATE, CONCURRENCY, REPLICAS = "paused", "draining", "rate", "concurrency", "replicas"


def say(client: Client, lanes: Sequence[Lane], stage: str, fields: Mapping[str, str | None]) -> None:
    """Set these fields of the stage in each lane; None takes a field back."""
    commands = []
    for lane in lanes:
        control = lane.stage(stage).control
        commands += [
            Command(("HDEL", control, name) if value is None else ("HSET", control, name, value), int)
            for name, value in fields.items()
        ]
    run_all(client, commands)


def said(client: Client, lane: Lane, stage: str, field: str) -> str | None:
    """What was said, None if nothing was."""
    value = client.hget(lane.stage(stage).control, field)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def set_rate(client: Client, lane: Lane, stages: Sequence[str], per_s: float | None) -> None:
    """The lane's requests/s, whatever its stages ask for: 0 = no limit; None = what the source says.

    The place in time that was reserved at the old rate goes: after a very low one, it may be far ahead.
    """
    pipeline = client.pipeline(transaction=True)
    for stage in stages:
        control = lane.stage(stage).control
        if per_s is None:
            pipeline.hdel(control, RATE)
        else:
            pipeline.hset(control, RATE, repr(per_s))
    pipeline.hdel(lane.site, "next_us")
    pipeline.execute()
