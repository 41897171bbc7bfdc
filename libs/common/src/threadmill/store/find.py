"""Looking for a key in every place of a stage, in portions: Redis is never held for more than a few ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import redis

from threadmill.model.keys import GROUP, Lane, StageKeys
from threadmill.store.calls import Arg, Call, Command, is_no_group, run, run_all
from threadmill.store.glob import escaped
from threadmill.store.letters import DeadLetter
from threadmill.store.pieces import Piece, Place, of_entry, of_letter, of_member
from threadmill.store.scripts import compose
from threadmill.store.work import Entry

PORTION = 500
"""Entries of one look: 2 to 3 ms of Redis's time at most."""

_LOOK_STREAM = compose("look_stream")
_LOOK_HASH = compose("look_hash")


class Search:
    """Looks for one key in one stage of one lane."""

    def __init__(
        self, client: redis.Redis, lane: Lane, stage: str, key: str, told: Callable[[int], None] = lambda _: None
    ) -> None:
        """`told` is called with how many pieces were looked at since it was last called."""
        self._client = client
        self._lane = lane
        self._stage = stage
        self._key = key
        self._told = told
        self._keys: StageKeys = lane.stage(stage)

    def pieces(self) -> Iterator[Piece]:
        """Every piece of work of the key, as it is found.

        Places are looked through in the order in which work moves: what moves meanwhile may be met twice, but is not
        missed, unless it goes back to wait.
        """
        yield from self._entries(self._keys.express, express=True)
        yield from self._entries(self._keys.tasks, express=False)
        yield from self._members(self._keys.delayed, Place.DELAYED)
        yield from self._members(self._keys.requests, Place.REQUESTS)
        yield from self._leased()
        yield from self._letters()

    def _mine(self, piece: Piece) -> bool:
        return piece.key == self._key

    def _entries(self, stream: str, *, express: bool) -> Iterator[Piece]:
        at, before = b"-", 0
        while at:
            call = Call(_LOOK_STREAM, (stream,), (at, PORTION, self._key), list)
            at, looked, *matches = run(self._client, call)
            for place, entry_id, values in matches:
                entry = Entry(entry_id, express, dict(zip(values[::2], values[1::2], strict=True)))
                piece = of_entry(
                    entry, self._lane, self._stage, before=before + place - 1, holder=self._reader(stream, entry_id)
                )
                if self._mine(piece):
                    yield piece
            before += looked
            self._told(looked)

    def _reader(self, stream: str, entry_id: bytes) -> str:
        """The worker that has read the entry and not admitted it yet."""
        try:
            pending: Any = self._client.xpending_range(stream, GROUP, entry_id, entry_id, 1)
        except redis.ResponseError as error:
            if not is_no_group(error):
                raise
            return ""
        return pending[0]["consumer"].decode("utf-8", "replace") if pending else ""

    def _members(self, queue: str, place: Place) -> Iterator[Piece]:
        pattern = f"*{escaped(self._reference)}*"
        cursor, met, left = 0, set(), self._count("ZCARD", queue)
        while True:
            reply: Any = self._client.zscan(queue, cursor, match=pattern, count=PORTION)
            cursor, members = reply
            for member, score in members:
                if member not in met:
                    met.add(member)
                    due = int(score) if place is Place.DELAYED else 0
                    piece = of_member(place, member, due, before=self._rank(queue, member))
                    if self._mine(piece):
                        yield piece
            left = self._looked(left, over=cursor == 0)
            if cursor == 0:
                return

    def _rank(self, queue: str, member: bytes) -> int | None:
        rank: Any = self._client.zrank(queue, member)
        return None if rank is None else int(rank)

    def _leased(self) -> Iterator[Piece]:
        for lease_id, member in self._values(self._keys.leased, "", self._reference):
            expiry: Any = self._client.zscore(self._keys.leases, lease_id)
            piece = of_member(
                Place.LEASED,
                member,
                int(expiry or 0),
                id_=lease_id,
                holder=holder_of(lease_id.decode("utf-8", "replace")),
            )
            if self._mine(piece):
                yield piece

    def _letters(self) -> Iterator[Piece]:
        texts = ("\x1frequest\x1f", self._reference, "\x1ftask\x1f", self._key, "\x1ftask\x1f", "\\")
        for letter_id, data in self._values(self._keys.dead, *texts):
            piece = of_letter(DeadLetter.parse(letter_id, data), self._lane, self._stage)
            if self._mine(piece):
                yield piece

    def _values(self, name: str, *texts: Arg) -> Iterator[tuple[bytes, bytes]]:
        cursor, met, left = b"0", set(), self._count("HLEN", name)
        while True:
            cursor, *found = run(self._client, Call(_LOOK_HASH, (name,), (cursor, PORTION, *texts), list))
            for field, value in zip(found[::2], found[1::2], strict=True):
                if field not in met:
                    met.add(field)
                    yield field, value
            left = self._looked(left, over=cursor == b"0")
            if cursor == b"0":
                return

    def _count(self, command: str, name: str) -> int:
        return run(self._client, Command((command, name), int))

    def _looked(self, left: int, *, over: bool) -> int:
        """A scan looks at a part of the table, which has room for more than there is: tell no more than there was."""
        looked = left if over else min(PORTION, left)
        self._told(looked)
        return left - looked

    @property
    def _reference(self) -> str:
        """How a page's payload begins; see crawl/reference.py."""
        return f'{{"k":{orjson.dumps(self._key).decode()}'


def holder_of(lease_id: str) -> str:
    """The worker a lease is named after: `<worker id>.<call>.<n>`."""
    return lease_id.rsplit(".", 2)[0]


def to_look_at(client: redis.Redis, lane: Lane, stage: str) -> int:
    """How many pieces a search of the stage looks at."""
    keys = lane.stage(stage)
    streams = [Command(("XLEN", key), int) for key in (keys.express, keys.tasks)]
    queues = [Command(("ZCARD", key), int) for key in (keys.delayed, keys.requests)]
    hashes = [Command(("HLEN", key), int) for key in (keys.leased, keys.dead)]
    return sum(run_all(client, [*streams, *queues, *hashes]))
