"""The comparison finds what is wrong: a 0 is worth as much as the ability to say otherwise."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .compare import Report, compare
from .truth import Truth, minute, text_of

POST = {
    "post_id": "1",
    "title": "Über  uns",
    "author": "Zoë",
    "body": "a\nb",
    "published_at": "2025-03-03T12:00:00Z",
}
COMMENT = {"comment_id": "9", "post_id": "1", "body": "yes", "published_at": "2025-03-03T12:01:00Z"}
TRUTH = Truth(
    posts={"1": {"title": "Über uns", "author": "Zoë", "body": "a b", "published_at": "2025-03-03 12:00"}},
    comments={"9": {"post_id": "1", "body": "yes", "published_at": "2025-03-03 12:01"}},
)


def compared(folder: Path, posts: list[dict[str, Any]], comments: list[dict[str, Any]]) -> Report:
    store = folder / "store.sqlite3"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE posts (source, post_id, title, author, body, published_at)")
        connection.execute("CREATE TABLE comments (source, comment_id, post_id, body, published_at)")
        for table, rows in (("posts", posts), ("comments", comments)):
            for row in rows:
                columns, marks = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT INTO {table} (source, {columns}) VALUES ('spirit', {marks})", list(row.values())
                )
    return compare(TRUTH, store)


def test_rows_as_they_are_in_spirit_are_clean(tmp_path: Path) -> None:
    # Given what Spirit has, with the white space and the seconds of the collector
    report = compared(tmp_path, [POST], [COMMENT])
    # Then all is well
    assert report.clean, report
    assert (report.posts.expected, report.comments.stored) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([], "missing"),
        ([COMMENT, COMMENT], "duplicate"),
        ([COMMENT, COMMENT | {"comment_id": "10"}], "unexpected"),
        ([COMMENT | {"body": "yes!"}], "differing"),
        ([COMMENT | {"body": None}], "differing"),
        ([COMMENT | {"post_id": "2"}], "differing"),
        ([COMMENT | {"published_at": "2025-03-03T12:02:00Z"}], "differing"),
        ([COMMENT | {"published_at": "2025-03-03T00:01:00Z"}], "differing"),
    ],
)
def test_every_mistake_is_counted_and_shown(tmp_path: Path, rows: list[dict[str, Any]], wrong: str) -> None:
    # Given a store with one mistake
    report = compared(tmp_path, [POST], rows)
    # Then it is counted as what it is, once, and a sample names the row
    counts = {name: getattr(report.comments, name) for name in ("missing", "unexpected", "duplicate", "differing")}
    assert counts == dict.fromkeys(counts, 0) | {wrong: 1}
    assert not report.clean
    assert "comment_id" in str(report)


def test_an_empty_truth_is_never_clean(tmp_path: Path) -> None:
    report = compared(tmp_path, [POST], [COMMENT])
    assert not Report(posts=type(report.posts)(), comments=type(report.posts)()).clean


def test_text_of_markup_is_read_without_a_parser_of_ours() -> None:
    assert text_of("<p>a<br>\nb <strong>c</strong>&amp;</p><ul><li>d</li><li>e</li></ul>") == "a b c& d e"
    assert text_of("<p> </p>") is None


def test_times_are_compared_to_the_minute() -> None:
    assert minute("2025-03-03 12:00:59.9") == minute("2025-03-03T12:00:00Z") == "2025-03-03 12:00"
