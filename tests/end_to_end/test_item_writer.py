"""The item writer as a process, on a real Redis and SQLite: what is collected becomes rows, each exactly once."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from end_to_end.item_writers import Writers, eventually
from threadmill.model.keys import Lane
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import connect

LANE, OTHER = Lane("bbs", 0, "t"), Lane("bbs", 1, "t")


@pytest.fixture
def writers(tmp_path: Path, client: redis.Redis, redis_server: EmbeddedRedis) -> Iterator[Writers]:
    made = Writers(tmp_path, redis_server.url)
    yield made
    made.end()


def collected(client: redis.Redis, *pages: Any, lane: Lane = LANE, entry_id: str = "*") -> None:
    """Pages' items as a page's commit leaves them: each a list of items, or bytes."""
    pipeline = client.pipeline()
    for page in pages:
        body = page if isinstance(page, bytes) else json.dumps(page).encode()
        pipeline.xadd(lane.items, {"s": "comment", "i": body}, id=entry_id)
        pipeline.hincrby(lane.items_stats, "committed", 0 if isinstance(page, bytes) else len(page))
    pipeline.execute()


def comment(number: int, body: str = "words") -> dict[str, object]:
    return {"type": "comment", "source": "bbs", "comment_id": f"{number:06}", "post_id": "1", "body": body}


def pages(first: int, last: int, size: int = 20) -> list[list[dict[str, object]]]:
    return [[comment(number) for number in range(at, min(at + size, last))] for at in range(first, last, size)]


def all_settled(client: redis.Redis, *lanes: Lane) -> bool:
    books = [client.hgetall(lane.items_stats) for lane in lanes or (LANE,)]
    return all(book.get(b"committed") == book.get(b"settled:sql") for book in books)


def ids(last: int) -> list[tuple[str]]:
    return [(f"{number:06}",) for number in range(last)]


def test_20_000_comments_of_two_lanes_are_rows_within_seconds(client: redis.Redis, writers: Writers) -> None:
    # Given 20,000 comments in two lanes, and a database whose folder does not exist
    collected(client, *pages(0, 15_000))
    collected(client, *pages(15_000, 20_000), lane=OTHER)
    # When a writer runs
    process = writers.start()
    eventually(lambda: all_settled(client, LANE, OTHER), deadline_s=15)
    # Then every comment is a row, the streams are empty, and it ends in good order, leaving no record behind
    assert writers.rows() == ids(20_000)
    assert (client.xlen(LANE.items), client.xlen(OTHER.items)) == (0, 0)
    assert writers.stop(process) == 0
    assert client.xinfo_consumers(LANE.items, "sql") == []


def test_a_writer_killed_between_commit_and_settling_has_lost_and_doubled_nothing(
    client: redis.Redis, writers: Writers
) -> None:
    # Given a writer that has taken a batch and waits for the database
    process = writers.start()
    eventually(lambda: writers.rows("SELECT 1 FROM sqlite_master WHERE name = 'comments_of_post'"))
    with writers.held():
        collected(client, *pages(0, 100))
        eventually(lambda: "trying again" in writers.log)
        # And a Redis that takes no writes from now on
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    # When it is killed as soon as it has committed
    eventually(lambda: len(writers.rows()) == 100)
    process.kill()
    process.wait()
    me = client.client_id()
    eventually(lambda: [info for info in client.client_list() if int(info["id"]) != me] == [])
    client.execute_command("CLIENT", "UNPAUSE")
    # Then the batch is not settled
    assert client.xpending(LANE.items, "sql")["pending"] > 0
    assert client.hget(LANE.items_stats, "settled:sql") is None
    # And the next writer settles it, with every row there once and as it was written first
    before = writers.rows("SELECT * FROM comments ORDER BY comment_id")
    writers.start()
    eventually(lambda: all_settled(client))
    assert writers.rows("SELECT * FROM comments ORDER BY comment_id") == before
    assert writers.rows() == ids(100)


def test_two_writers_killed_at_random_write_every_row_once(client: redis.Redis, writers: Writers) -> None:
    # Given two writers at once, and comments that keep coming
    running = [writers.start(), writers.start()]
    # When one of them is killed in the middle of it, again and again, and another takes its place
    for first in range(0, 16_000, 4_000):
        collected(client, *pages(first, first + 4_000))
        new = f"SELECT 1 FROM comments WHERE comment_id >= '{first:06}' LIMIT 1"
        eventually(lambda: writers.rows(new))  # noqa: B023
        victim = running.pop(0)
        victim.kill()
        victim.wait()
        running.append(writers.start())
    # Then in the end every row is there, and every item was counted once
    eventually(lambda: all_settled(client), deadline_s=40)
    assert writers.rows() == ids(16_000)
    assert client.xlen(LANE.items) == 0
    assert [writers.stop(process) for process in running] == [0, 0]


def test_older_data_delivered_after_newer_does_not_move_the_row(client: redis.Redis, writers: Writers) -> None:
    # Given a page that a writer took before it died, and a newer one of the same millisecond
    client.xgroup_create(LANE.items, "sql", "0", mkstream=True)
    collected(client, [comment(1, "old")], entry_id="1700000000000-1")
    client.xreadgroup("sql", "dead", {LANE.items: ">"})
    collected(client, [comment(1, "new")], entry_id="1700000000000-2")
    # When the newer one is written first, and the older one taken over afterwards
    process = writers.start()
    eventually(lambda: writers.rows("SELECT body FROM comments") == [("new",)])
    writers.stop(process)
    client.xclaim(LANE.items, "sql", "dead", 0, ["1700000000000-1"], idle=600_000)
    writers.start()
    eventually(lambda: all_settled(client))
    # Then the row is as it was
    assert writers.rows("SELECT body FROM comments") == [("new",)]


def test_bad_items_are_parked_and_hold_up_nothing(client: redis.Redis, writers: Writers) -> None:
    # Given pages with an item with a NUL, one of no known type, and an entry that is no array
    nul = {**comment(2), "body": "a\x00b"}
    collected(client, [comment(0), nul, {"type": "user"}, comment(1)], b"no JSON \xff", [comment(2)])
    # When a writer runs
    writers.start()
    eventually(lambda: all_settled(client) and client.xlen(LANE.items) == 0)
    # Then the good items are rows, and the others are parked with their bytes
    assert writers.rows() == ids(3)
    parked = [(fields[b"bytes"], fields[b"error"]) for _, fields in client.xrange(LANE.items_dead)]
    assert [body for body, _ in parked] == [json.dumps(nul).encode(), b'{"type": "user"}', b"no JSON \xff"]
    assert b"NUL" in parked[0][1]


def test_a_stop_while_the_database_is_locked_keeps_what_was_taken(client: redis.Redis, writers: Writers) -> None:
    # Given a writer that waits for a locked database with a batch in its hands
    process = writers.start()
    eventually(lambda: writers.rows("SELECT 1 FROM sqlite_master WHERE name = 'comments_of_post'"))
    with writers.held():
        collected(client, *pages(0, 50))
        eventually(lambda: "database is locked; trying again" in writers.log)
        # When it is told to stop, then it does at once, in good order
        assert writers.stop(process) == 0
        assert client.xpending(LANE.items, "sql")["pending"] == 3
        # And a writer that starts while the database is locked waits for it
        writers.start()
        eventually(lambda: "cannot be opened" in writers.log)
    # Then it takes over what the first one had
    eventually(lambda: all_settled(client))
    assert writers.rows() == ids(50)


def test_a_redis_that_goes_away_is_waited_for(tmp_path: Path, writers: Writers) -> None:
    # Given a writer, and a Redis that goes away while it runs
    with EmbeddedRedis(tmp_path / "redis", fsync="always") as server:
        writers.environment["THREADMILL_REDIS_URL"] = server.url
        process = writers.start()
        collected(connect(server.url), *pages(0, 40))
        eventually(lambda: writers.rows() == ids(40))
        server.kill()
        eventually(lambda: "Redis cannot serve" in writers.log)
        assert process.poll() is None
        # When it is back, then the writer goes on
        server.start()
        again = connect(server.url)
        eventually(again.ping)
        collected(again, *pages(40, 80))
        eventually(lambda: all_settled(again))
        assert writers.rows() == ids(80)
        # And without Redis it still stops at once
        server.stop()
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0


def test_settings_that_cannot_work_are_one_sentence(writers: Writers) -> None:
    # Given a store that there is none for, with a password
    process = writers.start(THREADMILL_STORE_URL="mysql://me:hunter2@db/rows")
    # Then the writer ends with the status for settings, says why, and shows no secret
    assert process.wait(20) == 2
    assert writers.log.startswith("item_writer: THREADMILL_STORE_URL must begin with")
    assert writers.log.count("\n") == 1
    assert "hunter2" not in writers.log
