"""What travels to Redis: which verbs a message carries, and what shall befall the next that carries one."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from threadmill.model.keys import Lane
from threadmill.model.stages import DETAIL
from threadmill.store.scripts import compose
from threadmill.store.stage import StageStore

CHUNK = 1 << 18
QUIET_S = 0.02
"""Nothing came for so long: the message is whole. Clients of Redis send one, and wait for its reply."""
ANY = ""
_STREAMS = ("ensure_group", "settle", "claim_items", "leave_items")
SCRIPTS = [*StageStore(Lane("any", 0, ""), DETAIL)._scripts.values(), *map(compose, _STREAMS)]
_NAMES = {script.sha: script.name for script in SCRIPTS}
_COMMAND = re.compile(
    rb"EVALSHA\r\n\$40\r\n([0-9a-f]{40})|(?:\*\d+\r\n\$\d+|\$5(?=\r\nBLOCK))\r\n((?!EVALSHA)[A-Z]{4,})"
)


@dataclass(frozen=True)
class Fault:
    """What shall happen to the next message with `verb` (`ANY`: to the next): its `part` is lost, or it is late."""

    part: str
    verb: str
    late_s: float = 0.0


def verbs_of(message: bytes) -> list[str]:
    """The verbs a message carries, told by their scripts' digests, its plain commands, and `BLOCK` if it may wait."""
    found = set(_COMMAND.findall(message))
    return [_NAMES.get(sha.decode(), "script") if sha else command.decode() for sha, command in found]


async def whole(reader: asyncio.StreamReader, begun: bytes) -> bytes:
    """What began with `begun`, up to the first silence."""
    message = begun
    with suppress(TimeoutError):
        while more := await asyncio.wait_for(reader.read(CHUNK), QUIET_S):
            message += more
    return message


def pieces(chunk: bytes, dice: random.Random) -> Iterator[bytes]:
    """The same bytes, 1 to 7 at a time."""
    at = 0
    while at < len(chunk):
        size = dice.randint(1, 7)
        yield chunk[at : at + size]
        at += size
