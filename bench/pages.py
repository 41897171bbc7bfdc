"""The benchmark forum's pages: the three JSON interfaces, rendered from ids alone.

Every page is a pure function of its id, so two runs, two processes and two machines see the same forum. A
post has 0 to 106 comments, 20 a page, which makes about 13 items a page over a whole crawl; pages weigh 1 to
4 kB.
"""

import json
import re
from functools import lru_cache
from typing import Any

FORUM_PAGES = 500
POSTS_PER_PAGE = 20
COMMENTS_PER_PAGE = 20
MAX_COMMENTS = 106
POSTS_PER_FORUM = FORUM_PAGES * POSTS_PER_PAGE

_ID = rb"([1-9]\d{0,8})"
_PATH = re.compile(rb"/BBS/(?:list/%b/%b|post/%b|comment/%b/%b)\Z" % ((_ID,) * 5))
_WORDS = """
line page reply forum board evening harbour train market winter letter bridge garden river signal mirror
copper paper window station island morning thread answer question number story record village engine
""".split()  # noqa: SIM905  a list literal would take thirty lines


def comment_count(post_id: int) -> int:
    """How many comments a post has, 0 to `MAX_COMMENTS`, spread evenly over the ids."""
    # A multiplicative hash: neighbouring ids must not have neighbouring counts, or a run would drift as it
    # proceeds.
    return (post_id * 2_654_435_761 & 0xFFFFFFFF) * (MAX_COMMENTS + 1) >> 32


def comment_pages(post_id: int) -> int:
    """How many comment pages a post has; 0 when it has no comments."""
    return -(-comment_count(post_id) // COMMENTS_PER_PAGE)


# Enough for a run of throughput: a page that is rendered again costs its side time. At about 3 kB a page, 100 MB.
@lru_cache(maxsize=32_000)
def render(path: bytes) -> bytes | None:
    """The JSON body for a request path, or None where the forum has no such page."""
    match = _PATH.match(path)
    if match is None:
        return None
    forum, forum_page, post, thread, thread_page = (int(group or 0) for group in match.groups())
    page: dict[str, Any] | None
    if post:
        page = _post(post)
    elif thread:
        page = _comments(thread, thread_page)
    else:
        page = _list(forum, forum_page)
    return None if page is None else json.dumps(page, separators=(",", ":")).encode()


def _list(forum_id: int, page: int) -> dict[str, Any] | None:
    if not 1 <= page <= FORUM_PAGES:
        return None
    first = forum_id * POSTS_PER_FORUM + (page - 1) * POSTS_PER_PAGE
    return {
        "forum_id": str(forum_id),
        "page": page,
        "pages": FORUM_PAGES,
        "posts": [
            {
                "post_id": str(post_id),
                "title": _text(post_id, 5),
                "author": _author(post_id),
                "published_at": _time(post_id),
                "comment_count": comment_count(post_id),
                "last_reply_at": _time(post_id + comment_count(post_id)),
            }
            for post_id in range(first, first + POSTS_PER_PAGE)
        ],
    }


def _post(post_id: int) -> dict[str, Any]:
    return {
        "post_id": str(post_id),
        "forum_id": str(post_id // POSTS_PER_FORUM),
        "title": _text(post_id, 5),
        "body": _text(post_id, 120 + post_id % 200),
        "author": _author(post_id),
        "published_at": _time(post_id),
        "views": post_id * 7 % 10_007,
        "comment_count": comment_count(post_id),
        "url": f"/BBS/post/{post_id}",
    }


def _comments(post_id: int, page: int) -> dict[str, Any] | None:
    pages = comment_pages(post_id)
    if not 1 <= page <= pages:
        return None
    first = (page - 1) * COMMENTS_PER_PAGE
    last = min(first + COMMENTS_PER_PAGE, comment_count(post_id))
    return {
        "post_id": str(post_id),
        "page": page,
        "pages": pages,
        "comments": [
            {
                "comment_id": str(post_id * 1_000 + number),
                # A shallow tree: two in three comments answer an earlier one.
                "parent_id": str(post_id * 1_000 + number // 2) if number % 3 else None,
                "author": _author(post_id + number),
                "body": _text(post_id + number, 8 + number % 9),
                "published_at": _time(post_id + number),
            }
            for number in range(first, last)
        ],
    }


def _text(seed: int, words: int) -> str:
    return " ".join(_WORDS[(seed * 31 + word * word + word) % len(_WORDS)] for word in range(words))


def _author(seed: int) -> str:
    return f"user{seed * 48_271 % 9_973}"


def _time(seed: int) -> str:
    return f"2025-{seed % 12 + 1:02}-{seed % 28 + 1:02}T{seed % 24:02}:{seed % 60:02}:{seed * 7 % 60:02}Z"
