"""Spirit's database against what the collector stored, row by row and column by column."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .truth import Truth, minute, normal

_SAMPLES = 5
_NORMALISED = {"body": normal, "title": normal, "author": normal, "published_at": minute}


@dataclass(slots=True)
class Comparison:
    """One table: how many rows there should be and are, how many are wrong, and samples of those."""

    expected: int = 0
    stored: int = 0
    missing: int = 0
    unexpected: int = 0
    duplicate: int = 0
    differing: int = 0
    samples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return self.expected > 0 and not (self.missing or self.unexpected or self.duplicate or self.differing)

    def note(self, sample: str) -> None:
        if len(self.samples) < _SAMPLES:
            self.samples.append(sample)


@dataclass(frozen=True, slots=True)
class Report:
    """Both tables."""

    posts: Comparison
    comments: Comparison

    @property
    def clean(self) -> bool:
        """Every row is there once, as it is in Spirit, and no other."""
        return self.posts.clean and self.comments.clean

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        names = ("expected", "stored", "missing", "unexpected", "duplicate", "differing")
        lines = ["          " + "".join(f"{name:>12}" for name in names)]
        for table, rows in (("posts", self.posts), ("comments", self.comments)):
            lines.append(f"{table:<10}" + "".join(f"{getattr(rows, name):>12}" for name in names))
            lines += [f"  {sample}" for sample in rows.samples]
        return "\n".join(lines)


def compare(truth: Truth, store: Path, source: str = "spirit") -> Report:
    """`truth` against the tables `posts` and `comments` of the SQLite database `store`."""
    with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        posts = connection.execute("SELECT * FROM posts WHERE source = ?", (source,)).fetchall()
        comments = connection.execute("SELECT * FROM comments WHERE source = ?", (source,)).fetchall()
    return Report(
        posts=compare_rows(truth.posts, [dict(row) for row in posts], "post_id"),
        comments=compare_rows(truth.comments, [dict(row) for row in comments], "comment_id"),
    )


def compare_rows(expected: Mapping[str, Mapping[str, object]], stored: list[dict[str, Any]], key: str) -> Comparison:
    """Every expected row must be stored once, equal in every column the truth knows."""
    result = Comparison(expected=len(expected), stored=len(stored))
    seen: set[str] = set()
    for row in stored:
        row_id = row[key]
        if row_id in seen:
            result.duplicate += 1
            result.note(f"{key} {row_id} is stored more than once")
        elif row_id not in expected:
            result.unexpected += 1
            result.note(f"{key} {row_id} is stored, but no visitor can see it")
        elif wrong := _differences(expected[row_id], row):
            result.differing += 1
            result.note(f"{key} {row_id}: {'; '.join(wrong)}")
        seen.add(row_id)
    missing = expected.keys() - seen
    result.missing = len(missing)
    for row_id in sorted(missing):
        result.note(f"{key} {row_id} is missing")
    return result


def _differences(expected: Mapping[str, object], row: Mapping[str, Any]) -> list[str]:
    wrong = []
    for column, value in expected.items():
        normalise = _NORMALISED.get(column)
        found = normalise(row[column]) if normalise else row[column]
        if found != value:
            wrong.append(f"{column} is {str(found)[:200]!r}, Spirit has {str(value)[:200]!r}")
    return wrong
