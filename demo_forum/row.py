"""Rows of truth: the content of one post or one comment, all of it and nothing else."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PostRow:
    """What there is to collect of a post. `published_at` is ISO 8601 text, ``2026-01-02T03:04:05Z``."""

    post_id: str
    forum_id: str
    title: str
    body: str
    author: str
    published_at: str
    views: int
    comment_count: int


@dataclass(frozen=True, slots=True)
class CommentRow:
    """What there is to collect of a comment. `parent_id` is None for one that answers the post itself."""

    comment_id: str
    post_id: str
    parent_id: str | None
    author: str
    body: str
    published_at: str
