"""Poison during a crawl: in every stage's tasks, among the items, and in the site's own pages. It is parked with its
bytes, no process ends, and everything else is stored."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from redis.typing import EncodableT, FieldT

from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.model.stages import STAGES
from threadmill.store.letters import dead_letters
from waiting import wait_for

SIZE = ["--forums", "2", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "4"]
FORUMS = ["1", "2"]
MB = 1_000_000
DEEP = b"[" * 10_000 + b"]" * 10_000

TASKS: dict[bytes, str] = {
    b"": "not-json",
    b"\x00": "not-json",
    b'{"key": "\x00"}': "not-json",
    b'{"key": "1\\u00002"}': "malformed",
    b'{"key": "\\ud83d"}': "not-json",
    b'\xef\xbb\xbf{"key": "1"}': "not-json",
    b'{"key": "' + b"9" * MB + b'"}': "too-large",
    b'{"key": ' + b"[" * 8_000 + b"]" * 8_000 + b"}": "not-json",
    b'{"key": ' + DEEP + b"}": "too-large",
    b'{"key": "' + b"9" * 600 + b'"}': "malformed",
    b'{"key": 18446744073709551616}': "malformed",
    b'{"key": 1e999}': "not-json",
    b'{"key": ["1"]}': "malformed",
    b'{"key": null}': "malformed",
    b'{"key": "1", "priority": 9223372036854775808}': "malformed",
    b'{"key": "1", "priority": "high"}': "malformed",
    b'{"key": "1", "params": {"slug": 1}}': "malformed",
    b'{"key": "1", "params": []}': "malformed",
    b'{"key": "1", "job": {"$ne": ""}}': "malformed",
    b'{"key": "1", "depth": -1}': "malformed",
    b'{"key": "1", "force": 1}': "malformed",
    b'{"key": "1", "v": true}': "unknown-version",
}
"""Tasks as they are pushed from outside, each with the reason for which it is parked."""

GOOD = b'{"type": "post", "source": "bbs", "post_id": "1", "body": "good"}'
BAD_ITEMS: list[bytes] = [
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "a\\u0000b"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "a\x00b"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "\\ud83d"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "\xff"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "' + b"x" * 20 * MB + b'"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": "' + b"\\n" * 10 * MB + b'"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "extra": {"a": ' + DEEP + b"}}",
    b'{"type": "post", "source": "bbs", "post_id": "2", "views": 9223372036854775808}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "views": 340282366920938463463374607431768211456}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "views": 1e999}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "views": "many"}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "views": true}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "body": ["text"]}',
    b'{"type": "post", "source": "bbs", "post_id": "2", "extra": "text"}',
    b'{"type": "post", "source": "bbs", "post_id": 2}',
    b'{"type": "post", "source": "bbs", "post_id": ""}',
    b'{"type": "post", "post_id": "2"}',
    b'{"type": "comment", "source": "bbs", "comment_id": "2"}',
    b'{"type": "vote", "source": "bbs"}',
    b'{"source": "bbs", "post_id": "2"}',
    b"null",
    b'"text"',
]
"""What stands in an array of items where an item should."""

NO_ARRAYS = [
    b"",
    b"null",
    b"{not json",
    b'{"type": "post", "source": "bbs", "post_id": "2"}',
    b"[" * 10_000,
    DEEP[:-1],
    b"\xff\xfe\x00",
    b'[{"body": "' + b'\\"' * MB,
]
BAD_ENTRIES: dict[bytes, dict[str, bytes]] = {body: {"s": b"detail", "i": body} for body in NO_ARRAYS}
BAD_ENTRIES |= {b"s=detail": {"s": b"detail"}, b"nonsense=fields": {"nonsense": b"fields"}}
"""Entries of the item stream that are no arrays of items, by the bytes that are to be kept of each."""


@pytest.mark.scenario(23)
@pytest.mark.chaos
def test_poisoned_tasks_and_items_are_parked_while_a_crawl_goes_on(tmp_path: Path) -> None:
    # Given a crawl under way
    with pipeline(tmp_path, forum=[*SIZE, "--latency-ms", "300"], concurrency=4) as rig:
        rig.start()
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: rig.books("detail")["done"] > 4, what="posts to be collected")
        before = pids(rig)
        # When poison comes into every stage's two task streams, and among the items
        push_tasks(rig)
        pushed = push_items(rig)
        assert rig.books("detail")["done"] < 40
        rig.wait_until_done(job, seconds=120)
        # Then each task is parked in its stage, twice, under its reason and with its very bytes
        for stage in STAGES:
            wait_for(lambda stage=stage: rig.books(stage)["dead"] >= 2 * len(TASKS), what=f"{stage}'s dead letters")
            letters = list(dead_letters(rig.deployment.client, rig.lane, stage, 1000))
            assert {letter.body: letter.reason for letter in letters} == TASKS
            assert len(letters) == 2 * len(TASKS)
        # And so is each item, and each entry that is no array of items, while the good neighbour is stored
        assert sorted(parked_items(rig)) == sorted(pushed)
        assert stored_and_removed(rig, "1") == "good"
        # And no process ended, and the crawl is whole
        assert (pids(rig), rig.fleet.restarts) == (before, 0)
        assert rig.check().ok, rig.check()
        assert_whole(rig, job, dead=set(TASKS.values()), parked_items=len(pushed))


@pytest.mark.scenario(23)
@pytest.mark.chaos
def test_posts_that_are_hard_to_keep_are_kept_or_parked(tmp_path: Path) -> None:
    # Given a forum with a post that has U+0000 in it, one with half a surrogate pair, one of 5 MB, one that is no UTF-8
    harms = {"100007": "nul", "100008": "surrogate", "100009": "huge", "100010": "not_utf8"}
    at = " ".join(f"/BBS/post/{post}={harm}" for post, harm in harms.items())
    with pipeline(tmp_path, forum=[*SIZE, "--harm-at", at], max_failures=3, retry_base_ms=50) as rig:
        rig.start()
        # When it is collected
        job = rig.submit("list", FORUMS).job
        rig.wait_until_done(job)
        # Then the first is stored without the character that no store can hold, the second with U+FFFD for its half
        assert stored_and_mended(rig, "100008") == "\ufffd" + truth(rig, "100008")["body"]
        # And the third is collected, and parked by the item writer, with all its bytes
        [item] = parked_items(rig)
        post = json.loads(item)
        assert (post["post_id"], len(post["body"])) == ("100009", len(truth(rig, "100009")["body"]) + 5 * MB)
        # And the last is parked, so that its comments were never asked for; all else is there
        check = rig.check()
        assert (check.posts.missing, check.comments.missing) == (2, truth(rig, "100010")["comment_count"])
        assert rig.fleet.restarts == 0
        assert_whole(rig, job, dead=['"100010"'], parked_items=1)


def push_tasks(rig: Pipeline) -> None:
    """Push every bad task from outside, into the task streams of every stage."""
    for stage in STAGES:
        keys = rig.lane.stage(stage)
        for body in TASKS:
            rig.deployment.client.xadd(keys.tasks, {"task": body})
            rig.deployment.client.xadd(keys.express, {"task": body})


def push_items(rig: Pipeline) -> list[bytes]:
    """Push each bad item in an array of its own, one with a good neighbour, and the bad entries; the bytes to keep."""
    client = rig.deployment.client

    def push(fields: dict[str, bytes], items: int) -> None:
        named: dict[FieldT, EncodableT] = {**fields}
        client.xadd(rig.lane.items, named)
        client.hincrby(rig.lane.items_stats, "committed", items)

    for bad in BAD_ITEMS:
        push({"s": b"detail", "i": b"[" + bad + b"]"}, 1)
    push({"s": b"detail", "i": b"[" + GOOD + b", " + BAD_ITEMS[0] + b"]"}, 2)
    for fields in BAD_ENTRIES.values():
        push(fields, 0)
    return [*BAD_ITEMS, BAD_ITEMS[0], *BAD_ENTRIES]


def parked_items(rig: Pipeline) -> list[bytes]:
    """The bytes of every item that was parked."""
    entries = rig.deployment.client.xrange(rig.lane.items_dead)
    assert all(fields[b"error"] for _, fields in entries)
    return [fields[b"bytes"] for _, fields in entries]


def stored_and_removed(rig: Pipeline, post_id: str) -> str:
    """The body of a stored post, which is then removed: it is not of the forum's truth."""
    with closing(sqlite3.connect(rig.database, timeout=30)) as database, database:
        [(body,)] = database.execute("DELETE FROM posts WHERE post_id = ? RETURNING body", (post_id,)).fetchall()
        return str(body)


def stored_and_mended(rig: Pipeline, post_id: str) -> str:
    """The body of a stored post, which then becomes that of the forum's truth."""
    body = truth(rig, post_id)["body"]
    with closing(sqlite3.connect(rig.database, timeout=30)) as database, database:
        [(stored,)] = database.execute("SELECT body FROM posts WHERE post_id = ?", (post_id,)).fetchall()
        database.execute("UPDATE posts SET body = ? WHERE post_id = ?", (body, post_id))
        return str(stored)


def pids(rig: Pipeline) -> list[list[int]]:
    """The processes of the pipeline."""
    return [rig.fleet.pids(service) for service in (*(stage.service for stage in STAGES.values()), "item_writer")]


def truth(rig: Pipeline, post_id: str) -> dict[str, Any]:
    """A post as the forum has it."""
    with urllib.request.urlopen(f"{rig.forum_url}/truth/posts", timeout=30) as response:
        return next(post for line in response if (post := json.loads(line))["post_id"] == post_id)
