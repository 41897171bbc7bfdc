"""What is collected: posts and comments, in the columns of their tables; and that a post is gone."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from threadmill.model.errors import ThreadmillError

MAX_TEXT = 4_000_000
"""Longest text field, characters. A longer body is no forum post."""


class ItemError(ThreadmillError):
    """An item is not what its type says; it is parked with its bytes."""


@dataclass(frozen=True, slots=True)
class Post:
    """A post, unique by (source, post_id). Times are ISO 8601 UTC text."""

    source: str
    post_id: str
    forum_id: str | None = None
    title: str | None = None
    body: str | None = None
    author: str | None = None
    published_at: str | None = None
    views: int | None = None
    comment_count: int | None = None
    url: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, unique by (source, comment_id); `parent_id` is the comment it replies to, if any."""

    source: str
    comment_id: str
    post_id: str
    parent_id: str | None = None
    author: str | None = None
    body: str | None = None
    published_at: str | None = None
    url: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gone:
    """A post of which the site says that it is no more."""

    source: str
    post_id: str


Item = Post | Comment | Gone

ITEM_TYPES: dict[str, type[Item]] = {"post": Post, "comment": Comment, "gone": Gone}
_INTEGERS = {"views", "comment_count"}
_REQUIRED = {
    "post": ("source", "post_id"),
    "comment": ("source", "comment_id", "post_id"),
    "gone": ("source", "post_id"),
}


def item_from(body: object) -> Item:
    """Read an item from its JSON object; raises `ItemError` naming the field that is wrong."""
    if not isinstance(body, dict) or not isinstance(body.get("type"), str) or body["type"] not in ITEM_TYPES:
        raise ItemError(f"the item's `type` must be one of {', '.join(ITEM_TYPES)}")
    kind = body["type"]
    cls = ITEM_TYPES[kind]
    names = {f.name for f in fields(cls)}
    if unknown := body.keys() - names - {"type"}:
        raise ItemError(f"a {kind} has no field {', '.join(sorted(map(str, unknown)))}")
    for name in _REQUIRED[kind]:
        if not body.get(name):
            raise ItemError(f"a {kind} needs its {name}")
    for name, value in body.items():
        _check_field(kind, name, value)
    return cls(**{name: value for name, value in body.items() if name != "type"})


def _check_field(kind: str, name: str, value: object) -> None:
    if value is None:
        return
    if name == "extra":
        if not isinstance(value, dict):
            raise ItemError(f"a {kind}'s extra must be an object")
    elif name in _INTEGERS:
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise ItemError(f"a {kind}'s {name} must be a whole number of 64 bits")
    elif not isinstance(value, str):
        raise ItemError(f"a {kind}'s {name} must be text")
    elif "\x00" in value:
        raise ItemError(f"a {kind}'s {name} holds a NUL character")
    elif len(value) > MAX_TEXT:
        raise ItemError(f"a {kind}'s {name} has {len(value)} characters; at most {MAX_TEXT} are kept")


def utc_text(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 UTC text with milliseconds, so that text order is time order.

    Raises `ValueError`, `OverflowError` or `OSError` beyond the years 1 to 9999.
    """
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
