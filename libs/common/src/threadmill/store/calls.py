"""Calls of verbs: values that can be run alone, or many together in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import redis
from redis.exceptions import NoScriptError, ResponseError

from threadmill.store.scripts import Script

T = TypeVar("T")
Arg = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A verb with its keys and arguments. Every verb is safe to run twice with the same arguments."""

    script: Script
    keys: tuple[str, ...]
    args: tuple[Arg, ...]
    read: Callable[[Any], T]


def run(client: redis.Redis, call: Call[T]) -> T:
    """Run one verb and read its answer."""
    result: T = run_all(client, [call])[0]
    return result


def run_all(client: redis.Redis, calls: Sequence[Call[Any]]) -> list[Any]:
    """Run verbs in order in one round trip; each answers for itself.

    Raises the first error after all have run, so that what succeeded did succeed; verbs are idempotent, and whoever
    calls again changes nothing twice. Scripts that Redis does not know (it restarted) are loaded and run again.
    """
    replies = _send(client, calls)
    unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        for script in {calls[at].script for at in unknown}:
            client.script_load(script.text)
        for at, reply in zip(unknown, _send(client, [calls[at] for at in unknown]), strict=True):
            replies[at] = reply
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return [call.read(reply) for call, reply in zip(calls, replies, strict=True)]


def _send(client: redis.Redis, calls: Sequence[Call[Any]]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for call in calls:
        pipeline.execute_command("EVALSHA", call.script.sha, len(call.keys), *call.keys, *call.args)
    return list(pipeline.execute(raise_on_error=False))


def is_no_group(error: Exception) -> bool:
    """Whether the error says that a consumer group is gone (FLUSHALL, DEL, XGROUP DESTROY)."""
    return isinstance(error, ResponseError) and "NOGROUP" in str(error)
