"""Compares what was stored with what there was to collect."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import orjson

from demo_forum.truth import COMMENT_FIELDS, POST_FIELDS, row_digest, row_of

_TIMEOUT_S = 60.0
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome for one table, in rows.

    `duplicate` are rows beyond the first with the same id, `differing` those whose content is not the
    truth's. ``stored == expected - missing + unexpected + duplicate`` always. `examples` are the first few
    offending ids, each with what is wrong with it.
    """

    expected: int
    stored: int
    missing: int
    unexpected: int
    duplicate: int
    differing: int
    examples: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether exactly the truth was stored."""
        return not (self.missing or self.unexpected or self.duplicate or self.differing)


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome for posts and comments that stand; `gone` are the posts that are stored and marked as gone."""

    posts: Tally
    comments: Tally
    gone: int = 0

    @property
    def ok(self) -> bool:
        """Whether exactly the truth was stored."""
        return self.posts.ok and self.comments.ok


def compare(posts: Iterable[Mapping[str, Any]], comments: Iterable[Mapping[str, Any]], url: str) -> Check:
    """Compares stored rows of one source with the present truth of the forum at `url`, ``http://host:port``.

    Rows are mappings with at least the content fields; of the others only a post's `gone_at` is looked at: if it has
    one, it is left out, with its comments, for the site had it no more. Raises OSError if the forum does not answer,
    KeyError if a row lacks a field.
    """
    gone: set[Any] = set()
    return Check(
        posts=tally(_standing(posts, gone), truth_of(url, "posts"), POST_FIELDS),
        comments=tally(_of_others(comments, gone), truth_of(url, "comments"), COMMENT_FIELDS),
        gone=len(gone),
    )


def _standing(posts: Iterable[Mapping[str, Any]], gone: set[Any]) -> Iterator[Mapping[str, Any]]:
    """The posts that are not marked as gone; the ids of the others go into `gone`."""
    for post in posts:
        if post.get("gone_at"):
            gone.add(post["post_id"])
        else:
            yield post


def _of_others(comments: Iterable[Mapping[str, Any]], gone: set[Any]) -> Iterator[Mapping[str, Any]]:
    """The comments of posts that are not gone."""
    return (comment for comment in comments if comment["post_id"] not in gone)


def tally(stored: Iterable[Mapping[str, Any]], truth: Iterable[Mapping[str, Any]], names: Sequence[str]) -> Tally:
    """Compares stored rows with true ones by their fields `names`, the first of which is the id.

    Only a digest is kept of each true row, so that millions fit into memory.
    """
    expected = {record[names[0]]: row_digest(row_of(record, names)) for record in truth}
    seen: set[Any] = set()
    rows = unexpected = duplicate = differing = 0
    examples: list[str] = []
    for rows, record in enumerate(stored, start=1):  # noqa: B007  the last number is the count
        identity = record[names[0]]
        if identity in seen:
            fault, duplicate = "duplicate", duplicate + 1
        elif identity not in expected:
            fault, unexpected = "unexpected", unexpected + 1
        elif row_digest(row_of(record, names)) != expected[identity]:
            fault, differing = "differing", differing + 1
        else:
            fault = ""
        seen.add(identity)
        if fault and len(examples) < _EXAMPLES:
            examples.append(f"{identity} {fault}")
    missing = sorted(expected.keys() - seen)
    examples += [f"{identity} missing" for identity in missing[: _EXAMPLES - len(examples)]]
    return Tally(len(expected), rows, len(missing), unexpected, duplicate, differing, tuple(examples))


def truth_of(url: str, table: str) -> Iterator[dict[str, Any]]:
    """All ``posts`` or ``comments`` that the forum at `url` says there are. OSError if it is silent."""
    # The forum stands next door: a proxy that the environment names for the wide world would not find it.
    opener = build_opener(ProxyHandler({}))
    with opener.open(f"{url.rstrip('/')}/truth/{table}", timeout=_TIMEOUT_S) as answer:
        for line in answer:
            yield orjson.loads(line)


def rows_of(path: str | Path, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table of a SQLite file, which is opened for reading only.

    Raises FileNotFoundError if there is no such file, sqlite3.Error if it has no such table.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no SQLite file {path}")
    if not table.isidentifier():
        raise ValueError(f"no name of a table: {table!r}")
    with closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608  checked above
            yield dict(row)
