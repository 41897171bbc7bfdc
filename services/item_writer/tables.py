"""The tables, as scripts rely on them (docs/architecture.md). `collected_seq` alone is the writer's own."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import BigInteger, Column, Index, MetaData, Table, Text

from threadmill.model.items import Comment, Post

_INTEGERS = {"views", "comment_count"}

metadata = MetaData()


def _table(name: str, item: type[Post] | type[Comment], key: str, *required: str) -> Table:
    """A table of the item's fields, unique by (source, `key`)."""
    columns: list[Column[Any]] = []
    for field in fields(item):
        kind = BigInteger() if field.name in _INTEGERS else Text()
        primary = field.name in ("source", key)
        columns.append(
            Column(field.name, kind, primary_key=primary, nullable=not primary and field.name not in required)
        )
    return Table(
        name,
        metadata,
        *columns,
        Column("collected_at", Text(), nullable=False),
        # Two pages may be committed in one millisecond: their order on Redis's clock decides which is newer.
        Column("collected_seq", BigInteger(), nullable=False, server_default="0"),
    )


posts = _table("posts", Post, "post_id", "extra")
posts.append_column(Column("gone_at", Text()))  # when the site was found to have it no more; NULL while it stands
comments = _table("comments", Comment, "comment_id", "post_id", "extra")
Index("comments_of_post", comments.c.source, comments.c.post_id)
