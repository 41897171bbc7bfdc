"""What every side does with a page: the same parsing, the same items, so that only the crawlers differ.

The two functions take a response's body and know nothing of Scrapy or Redis.
"""

from dataclasses import dataclass
from typing import Any

import orjson

Item = dict[str, Any]
SOURCE = "bbs"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a page gave: its items, and the path of the page that follows, if any."""

    items: list[Item]
    next_path: str | None


def post_path(post_id: int | str) -> str:
    """Where a post is served."""
    return f"/BBS/post/{post_id}"


def parse_post(body: bytes) -> Parsed:
    """One item for the post; its first comment page follows if it has comments."""
    post = orjson.loads(body)
    item = {
        "source": SOURCE,
        "post_id": post["post_id"],
        "forum_id": post["forum_id"],
        "title": post["title"],
        "body": post["body"],
        "author": post["author"],
        "published_at": post["published_at"],
        "views": post["views"],
        "comment_count": post["comment_count"],
        "url": post["url"],
    }
    return Parsed([item], _comment_path(post["post_id"], 1) if post["comment_count"] else None)


def parse_comments(body: bytes) -> Parsed:
    """One item for each comment; the next comment page follows up to the last."""
    page = orjson.loads(body)
    post_id = page["post_id"]
    items = [
        {
            "source": SOURCE,
            "comment_id": comment["comment_id"],
            "post_id": post_id,
            "parent_id": comment["parent_id"],
            "author": comment["author"],
            "body": comment["body"],
            "published_at": comment["published_at"],
        }
        for comment in page["comments"]
    ]
    following = page["page"] + 1
    return Parsed(items, _comment_path(post_id, following) if following <= page["pages"] else None)


def _comment_path(post_id: str, page: int) -> str:
    return f"/BBS/comment/{post_id}/{page}"
