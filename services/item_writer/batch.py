"""A batch: the items of some entries, those that can be read and those that cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from threadmill.model.items import Item, ItemError, item_from, utc_text
from threadmill.store.items import ItemEntry, Rejected

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
"""A string, whole or to the end if nothing ends it, or a sign. It never backtracks: texts of many MB cost no more."""


class Collected(NamedTuple):
    """An item, and when it was collected: `at` (ISO 8601 UTC text, ms), then `seq` within that ms, then `position`."""

    item: Item
    at: str
    seq: int
    position: int
    entry: ItemEntry

    @property
    def age(self) -> tuple[str, int, int]:
        """Sorts from old to new."""
        return self.at, self.seq, self.position


@dataclass(slots=True)
class Batch:
    """`entries` are all entries, each with its number of items; every item is in `items` or in `rejected`."""

    entries: list[tuple[ItemEntry, int]] = field(default_factory=list)
    items: list[Collected] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def read_batch(entries: Sequence[ItemEntry]) -> Batch:
    """Read the items of these entries; never raises for what an entry holds."""
    batch = Batch()
    for entry in entries:
        try:
            bodies, at = _array(entry.body), utc_text(entry.at_ms)
        except (ValueError, OverflowError, OSError) as error:
            # Nobody counted the items of what is not an array, so none are settled.
            batch.entries.append((entry, 0))
            batch.rejected.append(Rejected(entry, f"the entry cannot be read: {error}", entry.body))
            continue
        batch.entries.append((entry, len(bodies)))
        refused: list[tuple[int, str]] = []
        for position, body in enumerate(bodies):
            try:
                if isinstance(body, orjson.JSONDecodeError):
                    raise ItemError(f"the item is not JSON that can be read: {body.msg}")
                batch.items.append(Collected(item_from(body), at, entry.seq, position, entry))
            except ItemError as error:
                refused.append((position, str(error)))
        batch.rejected += rejections(entry, refused)
    return batch


def rejections(entry: ItemEntry, refused: Sequence[tuple[int, str]]) -> list[Rejected]:
    """What is parked for an entry's items at these positions, each with its error: their very bytes."""
    if not refused:
        return []
    pieces = _pieces(entry.body)
    return [Rejected(entry, error, pieces[position]) for position, error in refused]


def _array(body: bytes) -> list[object]:
    """The elements of a JSON array, an error in place of each that is not JSON; raises `ValueError` if it is none."""
    try:
        bodies = orjson.loads(body)
    except orjson.JSONDecodeError:
        # A number beyond any float, nesting beyond any parser: that is one item's fault, and not its page's.
        return [_element(piece) for piece in _pieces(body)]
    if not isinstance(bodies, list):
        raise ValueError("it is not a JSON array")
    return bodies


def _element(piece: bytes) -> object:
    try:
        return orjson.loads(piece)
    except orjson.JSONDecodeError as error:
        return error


def _pieces(array: bytes) -> list[bytes]:
    """The elements of a JSON array as they are written, of any depth; raises `ValueError` for unmatched brackets."""
    pieces, depth, start = [], 0, 0
    array = array.strip()
    for token in _TOKEN.finditer(array):
        sign = token.group()
        if sign in (b"[", b"{"):
            depth += 1
            if depth == 1:
                start = token.end()
        elif sign in (b"]", b"}"):
            depth -= 1
        if (depth == 1 and sign == b",") or depth == 0:
            pieces.append(array[start : token.start()].strip())
            start = token.end()
        if depth == 0:
            break
    if depth or not array.startswith(b"[") or start != len(array):
        raise ValueError("it is not a JSON array")
    return pieces
