"""The demo forum as a forum that lives: its lists' order, growth on request, and the count of what was new."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from demo_forum import Forum, ForumConfig, compare
from demo_forum.board import Board
from demo_forum.comments import Comments
from demo_forum.post import first_post
from unit.visitor import Visitor, visit

SMALL = ForumConfig(seed=7, forums=1, pages_per_forum=3, posts_per_page=5, mean_comments=6, comments_per_page=5)


def like(config: ForumConfig, **changes: Any) -> ForumConfig:
    return ForumConfig(**asdict(config) | changes)


async def listed(visitor: Visitor) -> list[str]:
    return [post["post_id"] for page in await visitor.pages("/BBS/list/1") for post in page["posts"]]


async def ask(visitor: Visitor, door: str) -> int:
    async with visitor.client.post(door) as answer:
        await answer.read()
        return int(answer.status)


async def fresh(visitor: Visitor) -> dict[str, int]:
    counts: dict[str, int] = (await visitor.json("/hits"))["fresh"]
    return counts


def test_a_board_shows_each_post_once_whatever_the_size_of_its_pages() -> None:
    # Given boards with none to four of seven posts pinned
    posts = [Comments(first_post(SMALL, index)) for index in range(7)]
    for pinned in range(5):
        board = Board(list(posts))
        board.pin(pinned)
        for size in range(1, 9):
            # When its pages are read until one is empty
            pages = [board.page(number, size) for number in range(1, 9)]
            # Then all but the last are full, and the pinned ones come first, then the newest
            shown = [post for page in pages for post in page]
            assert shown == [*posts[:pinned][::-1], *posts[pinned:][::-1]]
            assert all(len(page) == size for page in pages[: 7 // size])


def test_an_active_list_shows_first_what_was_written_about_last() -> None:
    async def story(visitor: Visitor) -> None:
        # Given a list by activity
        before = await listed(visitor)
        times = {}
        for page in await visitor.pages("/BBS/list/1"):
            times |= {post["post_id"]: post["last_reply_at"] or post["published_at"] for post in page["posts"]}
        assert before == sorted(before, key=lambda post: times[post], reverse=True)
        # When a post of its last page gets a comment; then it comes first, and the others follow as they were
        bumped = before[-2]
        assert await ask(visitor, f"/grow?post={bumped}&comments=1") == 200
        assert await listed(visitor) == [bumped, *(post for post in before if post != bumped)]

    visit(story, like(SMALL, list_order="active"))


def test_pinned_posts_stay_on_top() -> None:
    async def story(visitor: Visitor) -> None:
        # Given two pinned posts; when one of them gets a comment, and one is deleted
        before = await listed(visitor)
        assert int(before[0]) < int(before[2])
        await ask(visitor, f"/grow?post={before[1]}&comments=1")
        assert await listed(visitor) == before
        await ask(visitor, f"/delete?post={before[0]}")
        assert await listed(visitor) == before[1:]

    visit(story, like(SMALL, pinned=2, list_order="active"))


def test_a_post_grows_when_asked_to() -> None:
    async def story(visitor: Visitor) -> None:
        # Given a post; when it gets 45 comments; then they stand behind the old ones, and all pages say so
        before = await listed(visitor)
        post = before[3]
        old = [row for page in await visitor.pages(f"/BBS/comment/{post}") for row in page["comments"]]
        assert await ask(visitor, f"/grow?post={post}&comments=45") == 200
        new = [row for page in await visitor.pages(f"/BBS/comment/{post}") for row in page["comments"]]
        assert new[: len(old)] == old
        assert len(new) == len(old) + 45
        # Then its list, the newest posts first, is in the order it was
        assert await listed(visitor) == before
        posts, comments = await visitor.collect(1)
        assert (await asyncio.to_thread(compare, posts, comments, visitor.url)).ok
        # And what does not stand neither grows nor can be deleted twice
        assert await ask(visitor, f"/delete?post={post}") == 200
        assert [await ask(visitor, door) for door in (f"/delete?post={post}", f"/grow?post={post}&comments=1")] == [
            404
        ] * 2
        assert await visitor.status(f"/BBS/post/{post}") == 410

    visit(story, SMALL)


def test_a_page_is_fresh_when_it_shows_something_for_the_first_time() -> None:
    async def story(visitor: Visitor) -> None:
        # Given a forum that was read whole: every page with something on it was fresh
        posts, _ = await visitor.collect(1)
        full = sum(-(-post["comment_count"] // 5) for post in posts)
        # `collect` looks at each list and comment page twice.
        assert await fresh(visitor) == {"list": 3, "post": 15, "comment": full, "total": 18 + full}
        async with visitor.client.post("/hits/reset"):
            pass
        await visitor.collect(1)
        assert (await fresh(visitor))["total"] == 0
        # When a post gets a comment; then one page of each interface is fresh, were it asked for ten times
        first = posts[0]["post_id"]
        await ask(visitor, f"/grow?post={first}&comments=1")
        await visitor.collect(1)
        await visitor.collect(1)
        assert await fresh(visitor) == {"list": 1, "post": 1, "comment": 1, "total": 3}
        # When a post is deleted; then what moved up in the list is not new, but that the post is gone is
        await ask(visitor, f"/delete?post={first}")
        await visitor.collect(1)
        assert (await fresh(visitor))["total"] == 3
        for _ in range(2):
            await visitor.status(f"/BBS/post/{first}")
        assert await fresh(visitor) == {"list": 1, "post": 2, "comment": 1, "total": 4}

    visit(story, SMALL)


def test_a_refused_page_was_not_shown() -> None:
    async def story(visitor: Visitor) -> None:
        # Given a page that comes to harm; when it is asked for; then it is as new as before
        await visitor.turn(harm_at="/BBS/list/1/1=empty")
        await visitor.status("/BBS/list/1/1")
        assert (await fresh(visitor))["list"] == 0
        await visitor.turn(harm_at="")
        await visitor.status("/BBS/list/1/1")
        assert (await fresh(visitor))["list"] == 1

    visit(story, SMALL)


def test_a_post_marked_as_gone_is_not_held_against_the_store(tmp_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        # Given all that was collected before a post with comments was deleted
        posts, comments = await visitor.collect(1)
        post = next(post for post in posts if post["comment_count"])
        await ask(visitor, f"/delete?post={post['post_id']}")
        # When it is not marked; then it is unexpected, and so are its comments
        check = await asyncio.to_thread(compare, posts, comments, visitor.url)
        assert (check.posts.unexpected, check.comments.unexpected, check.gone) == (1, post["comment_count"], 0)
        # When it is; then all is well; and one that stands may not be marked
        post["gone_at"] = "2026-01-02T03:04:05Z"
        check = await asyncio.to_thread(compare, posts, comments, visitor.url)
        assert (check.ok, check.gone) == (True, 1)
        standing = next(row for row in posts if "gone_at" not in row)
        standing["gone_at"] = post["gone_at"]
        assert (await asyncio.to_thread(compare, posts, comments, visitor.url)).posts.missing == 1

    visit(story, SMALL)


def test_growth_by_history_bumps_too_and_is_the_same_in_one_step_or_many() -> None:
    growing = like(SMALL, list_order="active", new_comments_per_minute=60.0, deletions_per_minute=4.0)
    orders = []
    for steps in (1, 37):
        forum = Forum(growing)
        for step in range(1, steps + 1):
            forum.advance(90 * step / steps)
        orders.append([comments.post.number for comments in forum.boards[1].posts])
    assert orders[0] == orders[1]
    assert orders[0] != sorted(orders[0])


@pytest.mark.parametrize("wrong", [{"list_order": "oldest"}, {"pinned": -1}])
def test_an_order_that_there_is_not_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        like(SMALL, **wrong)
