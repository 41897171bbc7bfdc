"""An operator stops a stage and lets it go while everything works, and follows the job."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from commands.operator import Operator
from end_to_end.pipeline import Pipeline, pipeline
from waiting import wait_for

SLOW = ["--forums", "2", "--pages-per-forum", "2", "--latency-ms", "60"]
POSTS = 2 * 2 * 20
PROMISED_S = 2.0


def comment_pages(rig: Pipeline) -> int:
    return sum(hits for path, hits in rig.hits().items() if path.startswith("/BBS/comment/"))


def test_comments_are_paused_while_lists_and_posts_go_on_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a crawl of a slow site, with comments under way and in the comment collector's buffer
    with pipeline(tmp_path, forum=SLOW, concurrency=2) as rig:
        threadmill = Operator(monkeypatch, capsys, rig.redis.url)
        rig.start()
        job = rig.submit("list", ["1"]).job
        wait_for(lambda: rig.books("comment")["done"] > 2, what="comments")
        # When comments are paused
        assert threadmill("pause", "comment").status == 0
        paused_at = time.monotonic()
        # Then 2 s later no more of their pages are asked for
        time.sleep(max(0.0, paused_at + PROMISED_S - time.monotonic()))  # the time that is promised
        pages = comment_pages(rig)
        # And lists and posts go on: another board is scanned, and its posts are collected
        rig.turn(latency_ms=0)
        rig.submit("list", ["2"], job=job)
        wait_for(lambda: rig.books("detail")["done"] == POSTS, what="the posts of both boards")
        assert (comment_pages(rig), rig.books("comment")["leased"]) == (pages, 0)
        assert "comment (paused)" in threadmill("status").out
        assert threadmill("job", job, "--json").json["state"] == "open"
        # When comments go on; then they do so within 2 s, and all is collected, once
        assert threadmill("resume", "comment").status == 0
        wait_for(lambda: comment_pages(rig) > pages, PROMISED_S, what="comments to go on")
        told = threadmill("job", job, "--wait", "--stored", "--timeout", "60", "--json").json
        assert rig.check().ok
        assert set(rig.hits().values()) == {1}
        events = threadmill("events", "--json").lines
    # And the job said when it was done, once
    assert [(event["event"], event["job"], event["done"]) for event in events] == [("job_finished", job, told["done"])]
    assert (told["state"], told["open"], told["dead"], told["done"]) == ("finished", 0, 0, told["accepted"])
    counts = {"accepted": POSTS, "done": POSTS, "open": 0, "dead": 0, "items": POSTS, "filtered": 0}
    assert told["stages"]["detail"] == counts
    assert told["seconds"] > PROMISED_S
