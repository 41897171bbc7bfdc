"""The forum has the pages it was asked for, and the callbacks find their way through them."""

import json

from bench.callbacks import parse_comments, parse_post, post_path
from bench.formula_forum import FormulaForum

FORUM = FormulaForum(list_pages=2, comment_pages=lambda post_id: 3 if post_id % 100 == 0 else 0)


def test_list_pages_name_their_posts() -> None:
    for number in (1, 2):
        page = json.loads(FORUM.render(b"/BBS/list/7/%d" % number) or b"")
        assert (page["page"], page["pages"]) == (number, 2)
        assert [int(post["post_id"]) for post in page["posts"]] == FORUM.posts(7, number)
    assert FORUM.posts(7, 1)[0] == 70_000
    assert [post["comment_count"] for post in page["posts"]] == [0] * 20


def test_a_long_thread_is_followed_to_its_end() -> None:
    # When a post with comments is followed
    page, seen = parse_post(FORUM.render(post_path(70_000).encode()) or b""), []
    while page.next_path:
        page = parse_comments(FORUM.render(page.next_path.encode()) or b"")
        seen += [comment["comment_id"] for comment in page.items]
    # Then its three pages have 20 comments each, and none twice
    assert len(seen) == len(set(seen)) == 60


def test_pages_that_are_not_there() -> None:
    for path in (b"/BBS/list/7/3", b"/BBS/comment/70000/4", b"/BBS/comment/70001/1", b"/robots.txt"):
        assert FORUM.render(path) is None
    assert parse_post(FORUM.render(b"/BBS/post/70001") or b"").next_path is None
