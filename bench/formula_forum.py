"""A forum like `bench.pages`, with as many list pages, and as many comment pages a post, as a benchmark asks for.

Posts and lists are those of `bench.pages`: the posts of list page p of forum f have the ids from
`f * POSTS_PER_FORUM + (p - 1) * POSTS_PER_PAGE` on. Every comment page is full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count

import orjson

from bench import pages
from bench.callbacks import Item


@dataclass(frozen=True, slots=True)
class FormulaForum:
    """A forum known beforehand.

    list_pages: of each board, 1 to `bench.pages.FORUM_PAGES`.
    comment_pages: how many comment pages a post has, by its id; 0 is no comments.
    """

    list_pages: int
    comment_pages: Callable[[int], int]

    def posts(self, forum_id: int, page: int) -> list[int]:
        """The ids on a list page."""
        first = forum_id * pages.POSTS_PER_FORUM + (page - 1) * pages.POSTS_PER_PAGE
        return list(range(first, first + pages.POSTS_PER_PAGE))

    def render(self, path: bytes) -> bytes | None:
        """The JSON body for a request path, or None where the forum has no such page."""
        kind, _, numbers = path.removeprefix(b"/BBS/").partition(b"/")
        if kind == b"comment":
            post, _, number = numbers.partition(b"/")
            return self._comments(int(post), int(number))
        body = pages.render(path)
        if body is None:
            return None
        page = orjson.loads(body)
        if kind == b"list":
            if page["page"] > self.list_pages:
                return None
            page["pages"] = self.list_pages
        for post_row in page["posts"] if kind == b"list" else [page]:
            post_row["comment_count"] = self.comment_pages(int(post_row["post_id"])) * pages.COMMENTS_PER_PAGE
        return orjson.dumps(page)

    def _comments(self, post_id: int, number: int) -> bytes | None:
        last = self.comment_pages(post_id)
        if not 1 <= number <= last:
            return None
        first = post_id * 1_000_000 + (number - 1) * pages.COMMENTS_PER_PAGE
        comments = [
            {**comment, "comment_id": str(first + at), "parent_id": str(first) if at % 3 else None}
            for at, comment in enumerate(_full_page())
        ]
        return orjson.dumps({"post_id": str(post_id), "page": number, "pages": last, "comments": comments})


@cache
def _full_page() -> list[Item]:
    """The comments of some page of `bench.pages` that has as many as a page can."""
    post_id = next(post_id for post_id in count(1) if pages.comment_count(post_id) >= pages.COMMENTS_PER_PAGE)
    comments: list[Item] = orjson.loads(pages.render(b"/BBS/comment/%d/1" % post_id) or b"")["comments"]
    return comments
