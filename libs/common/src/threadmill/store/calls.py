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

    @property
    def command(self) -> tuple[Arg, ...]:
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.args)


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """A plain Redis command, to travel with verbs."""

    command: tuple[Arg, ...]
    read: Callable[[Any], T]


def run(client: redis.Redis, call: Call[T] | Command[T]) -> T:
    """Run one call and read its answer."""
    result: T = run_all(client, [call])[0]
    return result


def run_all(client: redis.Redis, calls: Sequence[Call[Any] | Command[Any]]) -> list[Any]:
    """Run calls in order in one round trip; raises the first error after all have run."""
    results = attempt_all(client, calls)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def attempt_all(client: redis.Redis, calls: Sequence[Call[Any] | Command[Any]]) -> list[Any]:
    """Run calls in order in one round trip; each result is an answer, or the error Redis gave to that call alone.

    Scripts that Redis does not know (it restarted) are loaded and run again. Raises only when the connection fails:
    then any of the calls may have run, and all may be run again.
    """
    replies = _send(client, calls)
    unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        again = [calls[at] for at in unknown]
        for script in {call.script for call in again if isinstance(call, Call)}:
            client.script_load(script.text)
        for at, reply in zip(unknown, _send(client, again), strict=True):
            replies[at] = reply
    return [
        reply if isinstance(reply, Exception) else call.read(reply) for call, reply in zip(calls, replies, strict=True)
    ]


def _send(client: redis.Redis, calls: Sequence[Call[Any] | Command[Any]]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for call in calls:
        pipeline.execute_command(*call.command)  # type: ignore[no-untyped-call]
    return list(pipeline.execute(raise_on_error=False))


def is_no_group(error: Exception) -> bool:
    """Whether the error says that a consumer group is gone (FLUSHALL, DEL, XGROUP DESTROY)."""
    return isinstance(error, ResponseError) and "NOGROUP" in str(error)


def is_full(error: Exception) -> bool:
    """Whether Redis refused to take more: it has reached `maxmemory`."""
    return isinstance(error, ResponseError) and "command not allowed when used memory > 'maxmemory'" in str(error)
