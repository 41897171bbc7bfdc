"""The simulated forum: the same every time, complete in its pages, broken only when told to be."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from demo_forum import Forum, ForumConfig, Knobs, compare, rows_of
from demo_forum.check import tally
from demo_forum.moment import normalised
from demo_forum.truth import COMMENT_FIELDS, POST_FIELDS, Digest, Ledger, row_digest, row_of
from unit.visitor import SMALL, Visitor, visit

GROWING = ForumConfig(
    seed=7,
    forums=2,
    pages_per_forum=2,
    posts_per_page=5,
    mean_comments=6,
    comments_per_page=4,
    new_posts_per_minute=6,
    new_comments_per_minute=60,
    deletions_per_minute=2,
    growth_seconds=120,
)


def truth(config: ForumConfig, second: float = 0.0, steps: int = 1) -> list[Any]:
    """Everything on the forum of `config` at `second`, reached in so many steps."""
    forum = Forum(config)
    for step in range(1, steps + 1):
        forum.advance(second * step / steps)
    return [(c.post.row(count), c.last_reply_at, list(c.rows(0, count))) for c, count in forum.posts()]


def test_the_same_seed_makes_the_same_forum_and_another_seed_another() -> None:
    # Given two forums of one seed and one of another
    first, second, other = truth(SMALL), truth(SMALL), truth(ForumConfig(**asdict(SMALL) | {"seed": 8}))
    # Then
    assert first == second
    assert first != other


def test_the_default_forum_has_a_thousand_posts_and_a_heavy_tail_of_twenty_thousand_comments() -> None:
    # Given
    counts = sorted(count for _, count in Forum(ForumConfig()).posts())
    # Then
    assert len(counts) == 1000
    assert 18_000 < sum(counts) < 22_000
    assert counts.count(0) > 300
    assert 5 <= sum(count > 300 for count in counts) <= 15


def test_stragglers_have_longer_trees() -> None:
    # Given a forum, and the same one with every post a straggler
    plain = [count for _, count in Forum(SMALL).posts()]
    every = ForumConfig(**asdict(SMALL) | {"straggler_share": 1.0, "straggler_factor": 4})
    # Then
    assert [count for _, count in Forum(every).posts()] == [max(count, 1) * 4 for count in plain]


def test_ids_are_unique_and_trees_are_in_thread_order() -> None:
    # Given
    forum = truth(SMALL)
    ids = [row.comment_id for _, _, rows in forum for row in rows]
    # Then ids are unique, over all posts
    assert len(set(ids)) == len(ids)
    assert len({post.post_id for post, _, _ in forum}) == len(forum)
    nested = 0
    for _, _, rows in forum:
        path: list[str] = []
        for row in rows:
            # Then every comment answers the post, the comment before it, or one on the way to that
            while path and path[-1] != row.parent_id:
                path.pop()
            assert (path[-1] if path else None) == row.parent_id
            path.append(row.comment_id)
            nested += row.parent_id is not None
    assert nested > 20
    assert len(ids) - nested > 20


def test_pages_cover_exactly_the_truth() -> None:
    async def story(visitor: Visitor) -> None:
        # When every page is collected
        posts, comments = await visitor.collect(SMALL.forums)
        # Then the rows are those of the truth
        true_posts, true_comments = (
            await visitor.lines("/truth/posts"),
            await visitor.lines("/truth/comments"),
        )
        assert tally(posts, true_posts, POST_FIELDS).ok
        assert tally(comments, true_comments, COMMENT_FIELDS).ok
        # Then the summary counts and digests are those of the rows
        summary = await visitor.json("/truth")
        for name, rows, fields in (("posts", posts, POST_FIELDS), ("comments", comments, COMMENT_FIELDS)):
            digest = Digest()
            for row in rows:
                digest.add(1, row_digest(row_of(row, fields)))
            assert summary[name] == digest.summary()
        # Then nothing was asked for that is not counted
        hits = await visitor.json("/hits")
        assert hits["list"] + hits["post"] + hits["comment"] == hits["total"]

    visit(story)


def test_the_ledger_sums_the_same_whatever_it_was_asked_before() -> None:
    # Given a post with comments, and a ledger that summed all, then fewer, then all of them again
    comments, count = max(Forum(SMALL).posts(), key=lambda entry: entry[1])
    ledger = Ledger()
    sums = [ledger.sum_of(comments, size) for size in (count, count // 2, count)]
    # Then each sum is what a ledger that knows nothing says
    assert sums == [Ledger().sum_of(comments, size) for size in (count, count // 2, count)]
    assert sums[0] != sums[1]


def test_a_list_shows_the_newest_post_first_and_what_changes_about_it() -> None:
    async def story(visitor: Visitor) -> None:
        pages = await visitor.pages("/BBS/list/1")
        entries = [entry for page in pages for entry in page["posts"]]
        assert [(page["page"], page["pages"]) for page in pages] == [(1, 2), (2, 2)]
        published = [entry["published_at"] for entry in entries]
        assert published == sorted(published, reverse=True)
        for entry in entries:
            comments = [c for p in await visitor.pages(f"/BBS/comment/{entry['post_id']}") for c in p["comments"]]
            assert entry["comment_count"] == len(comments)
            assert entry["last_reply_at"] == max((c["published_at"] for c in comments), default=None)

    visit(story)


@pytest.mark.parametrize(
    "path",
    [
        "/BBS/list/4/1", "/BBS/list/1/3", "/BBS/list/1/0", "/BBS/list/01/1", "/BBS/list/x/1", "/BBS/list/1/²",
        "/BBS/post/1", "/BBS/post/999999999999999999999", "/BBS/comment/1/1", "/BBS/comment/100001/999",
    ],
)  # fmt: skip
def test_what_does_not_exist_is_404(path: str) -> None:
    async def story(visitor: Visitor) -> None:
        assert await visitor.status(path) == 404

    visit(story)


def test_a_post_without_comments_has_one_empty_comment_page() -> None:
    async def story(visitor: Visitor) -> None:
        silent = [row for row in await visitor.lines("/truth/posts") if row["comment_count"] == 0]
        path = f"/BBS/comment/{silent[0]['post_id']}"
        page = await visitor.json(f"{path}/1")
        assert (page["pages"], page["comments"]) == (1, [])
        assert await visitor.status(f"{path}/2") == 404

    visit(story)


def test_growth_is_the_same_in_one_step_or_many_and_stops_in_time() -> None:
    assert truth(GROWING, 90) == truth(GROWING, 90, steps=37)
    assert truth(GROWING, 90) != truth(GROWING, 91)
    assert truth(GROWING, 120) == truth(GROWING, 9999)


def test_new_posts_shift_the_lists() -> None:
    async def story(visitor: Visitor) -> None:
        # Given the lists at second 0
        before = [e["post_id"] for p in await visitor.pages("/BBS/list/1") for e in p["posts"]]
        # When a minute passes
        visitor.clock.now_s += 60
        # Then new posts come first, and the others follow as they were
        after = [e["post_id"] for p in await visitor.pages("/BBS/list/1") for e in p["posts"]]
        new = [post_id for post_id in after if post_id not in before]
        assert new
        assert after[: len(new)] == new == sorted(new, key=int, reverse=True)
        assert after[len(new) :] == before

    visit(story, ForumConfig(**asdict(GROWING) | {"deletions_per_minute": 0.0}))


def test_new_comments_are_appended_and_pages_that_were_cached_show_them() -> None:
    async def story(visitor: Visitor) -> None:
        # Given every page has been asked for at second 0
        _, before = await visitor.collect(GROWING.forums)
        # When a minute with 60 new comments passes
        visitor.clock.now_s += 60
        posts, after = await visitor.collect(GROWING.forums)
        # Then they stand behind the old ones of their post, and every page is up to date
        assert len(after) == len(before) + 60
        for post in posts:
            old = [row for row in before if row["post_id"] == post["post_id"]]
            new = [row for row in after if row["post_id"] == post["post_id"]]
            assert new[: len(old)] == old
            assert post["comment_count"] == len(new)
        assert (await asyncio.to_thread(compare, posts, after, visitor.url)).ok
        # Then the lists say so
        counts = {post["post_id"]: post["comment_count"] for post in posts}
        for forum in range(1, GROWING.forums + 1):
            for page in await visitor.pages(f"/BBS/list/{forum}"):
                for entry in page["posts"]:
                    assert entry["comment_count"] == counts[entry["post_id"]]

    visit(story, ForumConfig(**asdict(GROWING) | {"deletions_per_minute": 0.0, "new_posts_per_minute": 0.0}))


def test_a_deleted_post_is_gone_from_everywhere() -> None:
    async def story(visitor: Visitor) -> None:
        # Given
        before = {row["post_id"] for row in await visitor.lines("/truth/posts")}
        # When two posts are deleted
        visitor.clock.now_s += 60
        # Then
        deleted = before - {row["post_id"] for row in await visitor.lines("/truth/posts")}
        assert len(deleted) == 2
        for post_id in deleted:
            assert await visitor.status(f"/BBS/post/{post_id}") == 410
            assert await visitor.status(f"/BBS/comment/{post_id}/1") == 410
        posts, comments = await visitor.collect(GROWING.forums)
        assert not deleted & {post["post_id"] for post in posts}
        assert (await asyncio.to_thread(compare, posts, comments, visitor.url)).ok
        assert (await visitor.json("/truth"))["comments"]["count"] == len(comments)

    visit(story, GROWING)


def test_a_board_whose_posts_were_all_deleted_still_has_a_first_page() -> None:
    async def story(visitor: Visitor) -> None:
        visitor.clock.now_s += 600
        assert (await visitor.json("/BBS/list/1/1"))["posts"] == []
        assert await visitor.status("/BBS/list/1/2") == 404
        assert (await visitor.json("/truth"))["posts"] == {"count": 0, "digest": "0" * 32}

    visit(story, ForumConfig(forums=1, pages_per_forum=2, posts_per_page=3, deletions_per_minute=60))


def test_over_the_rate_the_answer_is_429_with_retry_after() -> None:
    async def story(visitor: Visitor) -> None:
        # When 5 requests come at once where 3 a second are allowed
        assert [await visitor.status("/BBS/list/1/1") for _ in range(5)] == [200, 200, 200, 429, 429]
        async with visitor.client.get("/BBS/list/1/1") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "9")
        # Then the operator's doors stay open, and a second later so does the forum
        assert await visitor.status("/truth") == 200
        visitor.clock.now_s += 1
        assert [await visitor.status("/BBS/list/1/1") for _ in range(4)] == [200, 200, 200, 429]
        assert (await visitor.json("/hits"))["refused"] == 4

    visit(story, knobs=Knobs(rate_limit_per_s=3, retry_after_s=9))


def test_errors_are_near_their_share_and_the_same_every_time() -> None:
    rounds: list[list[int]] = []

    async def story(visitor: Visitor) -> None:
        rounds.append([await visitor.status("/BBS/post/100001") for _ in range(1000)])
        hits = await visitor.json("/hits")
        assert (hits["total"], hits["refused"]) == (1000, rounds[-1].count(500))

    visit(story, knobs=Knobs(error_rate=0.2))
    visit(story, knobs=Knobs(error_rate=0.2))
    assert 160 <= rounds[0].count(500) <= 240
    assert rounds[0] == rounds[1]


def test_harms_are_near_their_share_and_the_same_every_time() -> None:
    rounds: list[list[int]] = []

    async def story(visitor: Visitor) -> None:
        rounds.append([await visitor.status("/BBS/post/100001") for _ in range(1000)])
        hits = await visitor.json("/hits")
        assert hits["harmed"] == {"unavailable": rounds[-1].count(503)}

    visit(story, knobs=Knobs(harm="unavailable", harm_rate=0.2))
    visit(story, knobs=Knobs(harm="unavailable", harm_rate=0.2))
    assert 160 <= rounds[0].count(503) <= 240
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(
    "harm", ["cut", "cut_chunked", "length_too_long", "length_too_short", "not_gzip", "length_of_a_tebibyte"]
)
def test_a_body_that_is_not_what_the_headers_say_cannot_be_read(harm: str) -> None:
    async def story(visitor: Visitor) -> None:
        with pytest.raises(aiohttp.ClientError):
            await visitor.status("/BBS/post/100001")

    visit(story, knobs=Knobs(harm_at=f"/BBS/post/100001={harm}"))


@pytest.mark.parametrize("harm", ["cut_unmarked", "empty", "html", "not_utf8"])
def test_a_body_that_is_no_page_can_be_read_and_not_understood(harm: str) -> None:
    async def story(visitor: Visitor) -> None:
        async with visitor.client.get("/BBS/post/100001") as answer:
            assert answer.status == 200
            with pytest.raises(ValueError):
                json.loads(await answer.read())

    visit(story, knobs=Knobs(harm_at=f"/BBS/post/100001={harm}"))


def test_one_path_comes_to_harm_and_its_neighbours_do_not() -> None:
    async def story(visitor: Visitor) -> None:
        # Given a path that always leads away, and one that goes round in circles
        async with visitor.client.get("/BBS/post/100001", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "http://10.0.0.1/")
        async with visitor.client.get("/BBS/post/100002", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/BBS/post/100002")
        # Then the others are as ever, and the harm is counted
        assert await visitor.status("/BBS/post/100003") == 200
        assert (await visitor.json("/hits"))["harmed"] == {"away": 1, "loop": 1}

    harm_at = "/BBS/post/100001=away /BBS/post/100002=loop"
    visit(story, knobs=Knobs(harm_at=harm_at, away="http://10.0.0.1/"))


def test_a_bomb_is_small_until_it_is_unpacked() -> None:
    async def story(visitor: Visitor) -> None:
        async with visitor.client.get("/BBS/post/100001", auto_decompress=False) as answer:
            assert len(await answer.read()) < 2_000_000
        async with visitor.client.get("/BBS/post/100002", auto_decompress=False) as answer:
            assert len(await answer.read()) < 20_000

    visit(story, knobs=Knobs(harm_at="/BBS/post/100001=bomb /BBS/post/100002=bomb_in_bomb"))


def test_a_forum_that_is_down_closes_connections_and_comes_back() -> None:
    async def story(visitor: Visitor) -> None:
        await visitor.turn(down=True)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await visitor.status("/BBS/list/1/1")
        assert await visitor.status("/healthz") == 200
        await visitor.turn(down=False)
        assert await visitor.status("/BBS/list/1/1") == 200
        assert (await visitor.json("/hits"))["total"] == 1

    visit(story)


def test_latency_delays_the_forum_only() -> None:
    async def story(visitor: Visitor) -> None:
        started_s = time.perf_counter()
        await visitor.status("/healthz")
        assert time.perf_counter() - started_s < 0.4
        started_s = time.perf_counter()
        await visitor.status("/BBS/list/1/1")
        assert time.perf_counter() - started_s >= 0.4

    visit(story, knobs=Knobs(latency_ms=400, jitter_ms=10))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"error_rate": 2}', "error_rate must be from 0 to 1"),
        ('{"latency_ms": -1}', "latency_ms must be a number of at least 0"),
        ('{"rate_limit_per_s": 0}', "rate_limit_per_s must be above 0"),
        ('{"down": 1}', "down must be bool"),
        ('{"latency_ms": true}', "latency_ms must be float"),
        ('{"speed": 1}', "no such knob: speed"),
        ('{"harm": "cut,tickle"}', "no such harm: tickle"),
        ('{"harm_at": "/BBS/post/1=tickle"}', "no such harm: tickle"),
        ('{"harm_rate": -0.1}', "harm_rate must be from 0 to 1"),
        ("[]", "expected a JSON object"),
        ("{", "unexpected end"),
    ],
)
def test_a_knob_that_cannot_be_turned_says_why_and_stays(body: str, reason: str) -> None:
    async def story(visitor: Visitor) -> None:
        async with visitor.client.post("/knobs", data=body) as answer:
            assert answer.status == 400
            assert reason in (await answer.json())["error"]
        assert await visitor.json("/knobs") == asdict(Knobs())

    visit(story)


@pytest.mark.parametrize("wrong", [{"forums": 0}, {"straggler_share": 1.5}, {"mean_comments": -1.0}, {"seed": "x"}])
def test_a_configuration_that_makes_no_forum_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ForumConfig(**wrong)


def test_hits_count_by_interface_and_path_until_reset() -> None:
    async def story(visitor: Visitor) -> None:
        # When
        for path in ("/BBS/list/1/1", "/BBS/list/1/1", "/BBS/post/100001", "/BBS/comment/1/1", "/healthz"):
            await visitor.status(path)
        # Then what is not found counts, and what is not the forum's does not
        fresh = {"list": 1, "post": 1, "comment": 0, "total": 2}
        counts = {"list": 2, "post": 1, "comment": 1, "total": 4, "fresh": fresh, "refused": 0, "harmed": {}}
        paths = {"/BBS/list/1/1": 2, "/BBS/post/100001": 1, "/BBS/comment/1/1": 1}
        assert await visitor.json("/hits") == counts
        assert await visitor.json("/hits?paths=1") == counts | {"paths": paths}
        # When reset
        async with visitor.client.post("/hits/reset") as answer:
            assert answer.status == 200
        # Then
        none = dict.fromkeys(counts, 0) | {"fresh": dict.fromkeys(fresh, 0), "harmed": {}, "paths": {}}
        assert await visitor.json("/hits?paths=1") == none

    visit(story)


def test_the_check_finds_each_kind_of_wrong_row(tmp_path: Path) -> None:
    async def story(visitor: Visitor) -> None:
        # Given a SQLite file with one post missing, one unexpected, one twice, and two that differ
        posts, comments = await visitor.lines("/truth/posts"), await visitor.lines("/truth/comments")
        stored = [post | {"source": "demo", "extra": "{}"} for post in posts[1:]]
        stored += [stored[0] | {"post_id": "5"}, stored[1]]
        stored[2] = stored[2] | {"title": "another"}
        stored[3] = stored[3] | {"views": stored[3]["views"] + 1}
        # Given times that are spelt the other way
        stored[4] = stored[4] | {"published_at": stored[4]["published_at"].replace("Z", "+00:00")}
        path = tmp_path / "store.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute(f"CREATE TABLE posts (source, {', '.join(POST_FIELDS)})")
            for row in stored:
                values = ["demo", *(row[name] for name in POST_FIELDS)]
                connection.execute(f"INSERT INTO posts VALUES ({', '.join('?' * len(values))})", values)
        connection.close()
        # When
        result = await asyncio.to_thread(compare, rows_of(path, "posts"), comments, visitor.url)
        # Then
        found = result.posts
        assert (found.expected, found.stored) == (len(posts), len(posts) + 1)
        assert (found.missing, found.unexpected, found.duplicate, found.differing) == (1, 1, 1, 2)
        assert set(found.examples) == {
            f"{posts[0]['post_id']} missing",
            "5 unexpected",
            f"{stored[1]['post_id']} duplicate",
            f"{stored[2]['post_id']} differing",
            f"{stored[3]['post_id']} differing",
        }
        assert not result.ok
        # Then the comments, which are all there, are fine
        assert result.comments.ok
        assert result.comments.stored == len(comments)

    visit(story)


def test_rows_of_a_file_that_is_not_there_are_an_error_and_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(rows_of(tmp_path / "none.sqlite", "posts"))
    assert not list(tmp_path.iterdir())


def test_times_are_normalised() -> None:
    for text in ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02T04:04:05+01:00"):
        assert normalised(text) == "2026-01-02T03:04:05Z"
    for text in ("yesterday", "2026-01-02T03:04:05", "2026-01-02T03:04:05.5Z"):
        assert normalised(text) == text


def test_the_command_serves_on_a_free_port_until_it_is_stopped(tmp_path: Path) -> None:
    # Given
    port_file = tmp_path / "port"
    size = ["--seed", "7", "--forums", "1", "--pages-per-forum", "1", "--latency-ms", "5"]
    command = [sys.executable, "-m", "demo_forum", "--port-file", os.fspath(port_file), *size]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # When it says that it listens
        line = process.stdout.readline()
        # Then the port file says the same
        assert line == f"demo forum: http://127.0.0.1:{int(port_file.read_text())}\n"
        assert [entry.name for entry in tmp_path.iterdir()] == ["port"]
        # When it is stopped, then it leaves in good order
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


def test_the_command_refuses_values_that_make_no_forum() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo_forum", "--error-rate", "7"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "error_rate must be from 0 to 1" in done.stderr
