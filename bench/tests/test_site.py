"""The benchmark's forum says the same thing every time, and its pages are what the sides expect."""

import json

import pytest

from bench.callbacks import parse_comments, parse_post, post_path
from bench.child import server
from bench.pages import comment_count, comment_pages, render
from bench.post_ids import post_ids
from bench.site_rate import site_rate

POSTS = range(10_000, 10_500)


def test_a_crawl_of_a_post_meets_all_its_comments() -> None:
    pages = items = 0
    for post_id in POSTS:
        # When a post is followed to its end
        parsed = parse_post(render(post_path(post_id).encode()) or b"")
        seen: list[str] = []
        pages += 1
        while parsed.next_path:
            parsed = parse_comments(render(parsed.next_path.encode()) or b"")
            seen += [item["comment_id"] for item in parsed.items]
            pages += 1
        # Then each of its comments was seen once
        assert len(set(seen)) == len(seen) == comment_count(post_id)
        items += 1 + len(seen)
    # And a page carries about 13 items
    assert 12 < items / pages < 14


def test_pages_weigh_up_to_4_kb() -> None:
    for post_id in POSTS:
        comments = [f"/BBS/comment/{post_id}/{page + 1}" for page in range(comment_pages(post_id))]
        for path in [post_path(post_id), *comments]:
            assert 0 < len(render(path.encode()) or b"") <= 4096


@pytest.mark.parametrize("path", ["/", "/BBS/post/0", "/BBS/post/x", "/BBS/comment/10000/99", "/BBS/list/1/501"])
def test_pages_that_are_not_there(path: str) -> None:
    assert render(path.encode()) is None


def test_parents_are_comments_of_the_post() -> None:
    for post_id in POSTS:
        for page in range(comment_pages(post_id)):
            body = render(f"/BBS/comment/{post_id}/{page + 1}".encode()) or b""
            for comment in json.loads(body)["comments"]:
                parent = comment["parent_id"]
                assert parent is None or post_id * 1000 <= int(parent) < int(comment["comment_id"])


def test_the_site_is_never_the_bottleneck() -> None:
    with server("bench.site") as port:
        posts = post_ids(f"http://127.0.0.1:{port}", 1000)
        assert site_rate(port, posts, 2.0) >= 8_000
