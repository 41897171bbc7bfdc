"""Only what is new: what is downloaded and stored when a forum that was collected has moved on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo_forum.check import rows_of
from end_to_end.pipeline import Pipeline, pipeline

BBS = Path(__file__).parents[2] / "sources" / "bbs.toml"
EMPTY = ["--forums", "1", "--pages-per-forum", "2", "--mean-comments", "0"]
"""A board of forty posts without comments: 100001 to 100040, the newest first."""


@contextmanager
def collecting(folder: Path, *, per_page: int, said: int) -> Iterator[Pipeline]:
    """A pipeline on a forum with so many comments a page, by a source that says there are `said`."""
    text = BBS.read_text(encoding="utf-8")
    assert "resume = { per_page = 20 }" in text
    source = folder / "bbs.toml"
    source.write_text(text.replace("per_page = 20", f"per_page = {said}"), encoding="utf-8")
    with pipeline(folder, forum=[*EMPTY, "--comments-per-page", str(per_page)], sources=str(source)) as rig:
        rig.start()
        yield rig


def scan(rig: Pipeline, **how: bool) -> dict[str, int]:
    """Scan the board and wait until all it led to is stored; answers what was downloaded for it."""
    before = Counter(rig.hits())
    done = rig.wait_until_done(rig.submit("list", ["1"], **how).job)
    assert not done.dead
    return dict(Counter(rig.hits()) - before)


def items(rig: Pipeline) -> int:
    """Items that pages have committed."""
    return int(rig.deployment.client.hget(rig.lane.items_stats, "committed") or 0)


def comments(post: str, *pages: int) -> dict[str, int]:
    return {f"/BBS/comment/{post}/{page}": 1 for page in pages}


def test_a_post_whose_5_comments_became_50_brings_exactly_the_45(tmp_path: Path) -> None:
    # Given a collected board with a post of 5 comments, which fill its one comment page
    post = "100038"
    with collecting(tmp_path, per_page=5, said=5) as rig:
        rig.grow(post, 5)
        scan(rig)
        assert len(list(rows_of(rig.database, "comments"))) == 5
        stored = items(rig)
        # When it has 50, and the board is scanned again
        rig.grow(post, 45)
        downloaded = scan(rig)
        # Then 45 comments were stored, and the post with its new count
        assert items(rig) - stored == 45 + 1
        assert len(list(rows_of(rig.database, "comments"))) == 50
        assert rig.check().ok
        # And nothing was downloaded but the list's first page, the post, and the pages with new comments
        assert downloaded == {"/BBS/list/1/1": 1, f"/BBS/post/{post}": 1} | comments(post, *range(2, 11))
        # And when the next two come, the page they share with the last ones is the first that is asked for
        rig.grow(post, 2)
        scan(rig)
        rig.grow(post, 2)
        assert scan(rig) == {"/BBS/list/1/1": 1, f"/BBS/post/{post}": 1} | comments(post, 11)
        assert rig.check().ok


def test_a_site_with_larger_pages_than_its_source_says_is_collected_all_the_same(tmp_path: Path) -> None:
    # Given posts of 15 comments, 20 of which fit on a page, and a source that says 5
    past_the_end, too_late = "100038", "100037"
    with collecting(tmp_path, per_page=20, said=5) as rig:
        for post in (past_the_end, too_late):
            rig.grow(post, 15)
        scan(rig)
        # When they have grown, so that one has no fourth page, and that of the other has the last ten of 70
        rig.grow(past_the_end, 15)
        rig.grow(too_late, 55)
        downloaded = scan(rig)
        # Then it is noticed that there must be more, and each page is asked for once
        assert rig.check().ok
        assert {path: n for path, n in downloaded.items() if past_the_end in path} == {
            f"/BBS/post/{past_the_end}": 1
        } | comments(past_the_end, 4, 1, 2)
        assert {path: n for path, n in downloaded.items() if too_late in path} == {
            f"/BBS/post/{too_late}": 1
        } | comments(too_late, 4, 1, 2, 3)


def test_deleted_posts_are_marked_and_are_no_errors(tmp_path: Path) -> None:
    # Given a collected board, of which a post with comments was deleted
    old, listed = "100005", "100039"
    with collecting(tmp_path, per_page=5, said=5) as rig:
        rig.grow(old, 7)
        scan(rig, full=True)
        rig.delete(old)
        # When the board is scanned down to known posts; then that is not noticed, and costs one page
        assert scan(rig) == {"/BBS/list/1/1": 1}
        assert rig.check().posts.unexpected == 1
        # When the whole board is scanned; then the post that is missing is asked for, and marked
        assert scan(rig, full=True) == {"/BBS/list/1/1": 1, "/BBS/list/1/2": 1, f"/BBS/post/{old}": 1}
        check = rig.check()
        assert (check.ok, check.gone) == (True, 1)
        assert rig.books("detail")["dead"] == 0
        # And it is not asked for again
        assert scan(rig, full=True) == {"/BBS/list/1/1": 1, "/BBS/list/1/2": 1}
        # When a post is gone before its comments are collected again; then the first of their pages says so, too
        rig.grow(listed, 12)
        rig.wait_until_done(rig.submit("detail", [listed], force=True).job)
        rig.delete(listed)
        rig.wait_until_done(rig.submit("comment", [listed], force=True).job)
        check = rig.check()
        assert (check.ok, check.gone) == (True, 2)
