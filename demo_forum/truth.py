"""What there is to collect, and a short proof that two collections are the same.

A *row* is the tuple of a post's or comment's content fields, in the order of `POST_FIELDS` or
`COMMENT_FIELDS`.

- The digest of a row is the BLAKE2b hash (16 bytes, read as a big-endian integer) of the row as a compact
  JSON array in UTF-8: ``json.dumps(row, ensure_ascii=False, separators=(",", ":"))``. Ids, texts and times
  are strings, times spelt ``2026-01-02T03:04:05Z``, counts are integers, a missing parent is null.
- The digest of many rows is the sum of theirs modulo 2**128, as 32 hexadecimal digits. A sum does not depend
  on the order, and unlike an exclusive or it notices a row that is there twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b

import orjson

from demo_forum.comments import Comments
from demo_forum.moment import normalised
from demo_forum.row import CommentRow, PostRow

Value = str | int | None

POST_FIELDS = tuple(entry.name for entry in fields(PostRow))
COMMENT_FIELDS = tuple(entry.name for entry in fields(CommentRow))

_MODULUS = 2**128


def row_of(record: Mapping[str, Value], names: Sequence[str]) -> tuple[Value, ...]:
    """The row in `record`, other fields left out, its time normalised. KeyError if a field is missing."""
    return tuple(
        normalised(value) if name == "published_at" and isinstance(value, str) else value
        for name, value in ((name, record[name]) for name in names)
    )


def row_digest(row: Sequence[Value]) -> int:
    """The digest of one row, an integer below 2**128."""
    return int.from_bytes(blake2b(orjson.dumps(list(row)), digest_size=16).digest(), "big")


class Digest:
    """The count and digest of the rows added so far, in any order."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0

    def add(self, count: int, total: int) -> None:
        """Adds `count` rows whose digests sum to `total`."""
        self.count += count
        self.total = (self.total + total) % _MODULUS

    def summary(self) -> dict[str, int | str]:
        """``{"count", "digest"}``, the digest as 32 hexadecimal digits."""
        return {"count": self.count, "digest": f"{self.total:032x}"}


class Ledger:
    """Sums of comment digests per post, kept so that only what is new must be drawn and hashed again."""

    def __init__(self) -> None:
        # post number → comments summed so far, and their sum.
        self._sums: dict[int, tuple[int, int]] = {}

    def sum_of(self, comments: Comments, count: int) -> int:
        """The sum of the digests of the first `count` comments."""
        done, total = self._sums.get(comments.post.number, (0, 0))
        if done > count:  # asked about a moment before the last one
            done, total = 0, 0
        for row in comments.rows(done, count):
            total += row_digest([getattr(row, name) for name in COMMENT_FIELDS])
        self._sums[comments.post.number] = (count, total)
        return total


def post_digest(comments: Comments, count: int) -> int:
    """The digest of the post itself when it has `count` comments."""
    row = comments.post.row(count)
    return row_digest([getattr(row, name) for name in POST_FIELDS])


def post_lines(comments: Comments, count: int) -> Iterator[bytes]:
    """The post as a line of JSON."""
    yield orjson.dumps(comments.post.row(count), option=orjson.OPT_APPEND_NEWLINE)


def comment_lines(comments: Comments, count: int) -> Iterator[bytes]:
    """The post's first `count` comments as lines of JSON."""
    for row in comments.rows(0, count):
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
