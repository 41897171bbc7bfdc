"""The forum's pages as bytes, each rendered once for as long as its content stands."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

import orjson

from demo_forum.board import Board
from demo_forum.comments import Comments
from demo_forum.forum import Forum
from demo_forum.moment import iso
from demo_forum.row import CommentRow

# About 400 MB of pages at most. When it is full the cache starts afresh: simple, and rare.
_CACHED_PAGES = 100_000


@dataclass(frozen=True, slots=True)
class Page:
    """An answer: HTTP status, JSON body, and what it shows (see `news`)."""

    status: int
    body: bytes
    rows: tuple[object, ...] = ()


NOT_FOUND = Page(404, b'{"error":"there is no such page"}')
GONE = Page(410, b'{"error":"this post was deleted"}')


class Pages:
    """The three interfaces of `forum`. Ids and page numbers are texts from URLs; no number, no page."""

    def __init__(self, forum: Forum) -> None:
        self._forum = forum
        # (interface, id, page) → the version it was rendered from, and the page.
        self._cache: dict[tuple[str, int, int], tuple[int, Page]] = {}

    def list_page(self, forum_id: str, page_number: str) -> Page:
        """A page of a forum's posts, newest first."""
        forum, number = natural(forum_id), natural(page_number)
        board = self._forum.boards.get(forum)
        if board is None:
            return NOT_FOUND
        return self._cached(("list", forum, number), board.version, lambda: self._list(board, forum, number))

    def post_page(self, post_id: str) -> Page:
        """A post with its text."""
        number = natural(post_id)
        comments = self._forum.post(number)
        if comments is None:
            return self._absent(number)
        return self._cached(("post", number, 1), comments.count, lambda: _post(comments))

    def comment_page(self, post_id: str, page_number: str) -> Page:
        """A page of a post's comments in thread order."""
        number, page = natural(post_id), natural(page_number)
        comments = self._forum.post(number)
        if comments is None:
            return self._absent(number)
        return self._cached(("comment", number, page), comments.count, lambda: self._comments(comments, page))

    def warm(self) -> None:
        """Renders every page that the cache has room for, so that none is slow when first asked for."""
        config = self._forum.config
        for forum, board in self._forum.boards.items():
            for page in range(1, _pages(board.size, config.posts_per_page) + 1):
                self.list_page(str(forum), str(page))
        for comments, count in self._forum.posts():
            pages = _pages(count, config.comments_per_page)
            if len(self._cache) + pages + 1 > _CACHED_PAGES:
                return
            self.post_page(comments.post.post_id)
            for page in range(1, pages + 1):
                self.comment_page(comments.post.post_id, str(page))

    def _absent(self, number: int) -> Page:
        return replace(GONE, rows=(f"{number} is gone",)) if self._forum.is_deleted(number) else NOT_FOUND

    def _cached(self, key: tuple[str, int, int], version: int, render: Callable[[], Page]) -> Page:
        known = self._cache.get(key)
        if known is not None and known[0] == version:
            return known[1]
        page = render()
        if page is not NOT_FOUND:  # page numbers past the end have no end
            if len(self._cache) >= _CACHED_PAGES:
                self._cache.clear()
            self._cache[key] = (version, page)
        return page

    def _list(self, board: Board, forum: int, number: int) -> Page:
        size = self._forum.config.posts_per_page
        pages = _pages(board.size, size)
        if not 1 <= number <= pages:
            return NOT_FOUND
        standing = board.page(number, size)
        posts = [_summary(comments) for comments in standing]
        content = {"forum_id": str(forum), "page": number, "pages": pages, "posts": posts}
        return _page(content, [(comments.post.number, comments.count) for comments in standing])

    def _comments(self, comments: Comments, number: int) -> Page:
        size = self._forum.config.comments_per_page
        pages = _pages(comments.count, size)
        if not 1 <= number <= pages:
            return NOT_FOUND
        shown = list(comments.rows((number - 1) * size, number * size))
        rows = [_comment(row) for row in shown]
        content = {"post_id": comments.post.post_id, "page": number, "pages": pages, "comments": rows}
        return _page(content, [row.comment_id for row in shown])


def _summary(comments: Comments) -> dict[str, object]:
    post = comments.post
    author, title = post.author_and_title()
    return {
        "post_id": post.post_id,
        "title": title,
        "author": author,
        "published_at": iso(post.published_s),
        "comment_count": comments.count,
        "last_reply_at": comments.last_reply_at,
    }


def _post(comments: Comments) -> Page:
    # The URL is relative: what the forum is called from outside is not for it to know.
    row = comments.post.row(comments.count)
    return _page({**asdict(row), "url": f"/BBS/post/{row.post_id}"}, [(comments.post.number, comments.count)])


def _comment(row: CommentRow) -> dict[str, object]:
    values = asdict(row)
    del values["post_id"]
    return values


def _page(content: dict[str, object], rows: Iterable[object]) -> Page:
    return Page(200, orjson.dumps(content), tuple(rows))


def _pages(entries: int, size: int) -> int:
    """Pages needed for so many entries; an empty list has one page, too."""
    return max(-(-entries // size), 1)


def natural(text: str) -> int:
    """The number that `text` spells in its one plain way, or 0, which is nobody's id and no page."""
    plain = text.isascii() and text.isdecimal() and text[0] != "0" and len(text) <= 18
    return int(text) if plain else 0
