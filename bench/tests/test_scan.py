"""What a scan counts, from visits that were made up."""

from bench.callbacks import parse_post, post_path
from bench.scan import Plan, Scan, seen
from bench.watched_site import Visit

PLAN = Plan(boards=2, list_pages=10, concurrency=4, latency_s=0.1, limit_s=5.0)


def _seen(every_s: float) -> Scan:
    """All list pages, one every so many seconds from second 100 on; a post and three comment pages before the last."""
    lists = [f"/BBS/list/{board}/{page}" for page in range(1, 11) for board in (1, 2)]
    others = [f"/BBS/post/{number}" for number in (10_000,)] + [f"/BBS/comment/10000/{page}" for page in (1, 2, 3)]
    visits = [Visit(path, 0.0, 100 + every_s * number) for number, path in enumerate(lists)]
    visits[-1:-1] = [Visit(path, 0.0, 100.1) for path in others]
    return seen(visits, PLAN, 100.0, None, 0.5)


def test_a_complete_scan_is_timed_from_its_first_to_its_last_page() -> None:
    scan = _seen(every_s=0.1)
    assert len(scan.list_times_s) == 20
    assert abs(scan.list_pages_per_s - 10.0) < 0.01
    assert (scan.posts, scan.comment_pages, scan.straggler_pages) == (1, 3, 2)


def test_a_scan_that_is_cut_off_is_timed_to_the_limit() -> None:
    # Given a page every 2 s, so at 0, 2 and 4 s of five
    scan = _seen(every_s=2.0)
    assert scan.list_times_s == [0.0, 2.0, 4.0]
    assert scan.list_pages_per_s == 2 / 5


def test_one_per_cent_are_stragglers() -> None:
    forum, calm = PLAN.forum(stragglers=True), PLAN.forum(stragglers=False)
    posts = [post for page in range(1, 11) for post in forum.posts(1, page)]
    assert [post for post in posts if forum.comment_pages(post) == 1_000] == posts[:2]
    assert {calm.comment_pages(post) for post in posts} == {1}
    assert parse_post(forum.render(post_path(posts[0]).encode()) or b"").items[0]["comment_count"] == 20_000
