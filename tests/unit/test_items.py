"""Items: posts and comments, read strictly, each error naming its field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmill.model.items import MAX_TEXT, Comment, Gone, ItemError, Post, item_from, utc_text

POST = {"type": "post", "source": "bbs", "post_id": "42"}
COMMENT = {"type": "comment", "source": "bbs", "comment_id": "7", "post_id": "42"}
GONE = {"type": "gone", "source": "bbs", "post_id": "42"}


def test_the_least_a_post_a_comment_and_a_deletion_need() -> None:
    assert item_from(POST) == Post("bbs", "42")
    assert item_from(COMMENT) == Comment("bbs", "7", "42")
    assert item_from(GONE) == Gone("bbs", "42")


def test_all_fields_are_kept() -> None:
    body = POST | {
        "forum_id": "1",
        "title": "제목",
        "body": "a\r\nb",
        "author": "",
        "published_at": "2026-01-01T00:00:00.000Z",
        "views": 0,
        "comment_count": 2**63 - 1,
        "url": "https://bbs.example/42",
        "extra": {"tags": ["a", {"b": None}]},
    }
    post = item_from(body)
    assert {"type": "post"} | {name: getattr(post, name) for name in Post.__slots__} == body


def test_null_is_unknown() -> None:
    assert item_from(COMMENT | {"parent_id": None, "body": None}) == Comment("bbs", "7", "42")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (None, "type"),
        ([], "type"),
        ("post", "type"),
        ({}, "type"),
        ({"type": "profile"}, "post, comment, gone"),
        ({"type": ["post"]}, "type"),
        ({"type": "post", "source": "bbs"}, "post_id"),
        (POST | {"source": ""}, "source"),
        (POST | {"post_id": None}, "post_id"),
        (POST | {"post_id": 42}, "post_id must be text"),
        (COMMENT | {"post_id": ""}, "post_id"),
        (COMMENT | {"title": "x"}, "no field title"),
        (GONE | {"title": "x"}, "no field title"),
        (POST | {"nonsense": 1, "also": 2}, "also, nonsense"),
        (POST | {"views": "12"}, "views"),
        (POST | {"views": 1.0}, "views"),
        (POST | {"views": True}, "views"),
        (POST | {"comment_count": 2**63}, "64 bits"),
        (POST | {"comment_count": -(2**63) - 1}, "64 bits"),
        (POST | {"extra": []}, "extra"),
        (POST | {"title": ["x"]}, "title"),
        (POST | {"body": "a\x00b"}, "body holds a NUL"),
        (POST | {"body": "x" * (MAX_TEXT + 1)}, "body has 4000001 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
def test_what_is_refused_names_its_field(body: Any, told: str) -> None:
    with pytest.raises(ItemError, match=told):
        item_from(body)


def test_the_longest_text_is_kept() -> None:
    assert len(item_from(POST | {"body": "x" * MAX_TEXT}).body or "") == MAX_TEXT


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from([*Post.__slots__, "comment_id", "type"]), anything))
def test_no_object_raises_anything_but_an_item_error(body: dict[str, Any]) -> None:
    # Given any values in a post's fields; when they are read; then they are an item or an error
    for item in (body, POST | body, body | POST, body | COMMENT):
        try:
            read = item_from(item)
        except ItemError as error:
            assert str(error)
        else:
            assert read.source


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 4_102_444_800_000), st.integers(0, 4_102_444_800_000))
def test_text_order_is_time_order(one: int, other: int) -> None:
    assert (utc_text(one) < utc_text(other)) == (one < other)
    assert datetime.fromisoformat(utc_text(one)) == datetime.fromtimestamp(one // 1000, UTC).replace(
        microsecond=one % 1000 * 1000
    )


def test_times_are_utc_with_milliseconds() -> None:
    assert utc_text(0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(1_795_000_000_007) == "2026-11-18T11:06:40.007Z"
