"""`threadmill boards …`: what an operator says, and is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from commands.operator import Operator
from dispatcher.dispatcher import Dispatcher
from threadmill.model.keys import Lane
from threadmill.ops.embedded import free_port
from threadmill.ops.stop import Stop

LANE = Lane("bbs")
Say = Callable[..., str]


@pytest.fixture
def boards(client: redis.Redis, threadmill: Operator) -> Say:
    """Says a command, which must succeed; answers all that it printed."""

    def say(*arguments: str) -> str:
        ended = threadmill("boards", *arguments)
        assert ended.status == 0, ended.err
        return ended.out if "--json" in arguments else ended.out + ended.err

    return say


@pytest.fixture
def refused(client: redis.Redis, threadmill: Operator) -> Say:
    """Says a command that makes no sense; answers the one sentence that it ends with."""

    def say(*arguments: str) -> str:
        ended = threadmill("boards", *arguments)
        assert (ended.status, ended.out) == (2, "")
        assert len(ended.err.splitlines()) == 1
        return ended.err

    return say


def rows(said: str) -> dict[str, dict[str, Any]]:
    """What `boards list --json` said, by board."""
    return {row["id"]: row for row in json.loads(said)}


def dispatch(client: redis.Redis) -> int:
    return Dispatcher(client, [LANE], Stop(), name="d1", threshold=100, reload=lambda: None).round()[0]


def test_boards_are_added_listed_changed_and_removed(client: redis.Redis, boards: Say, tmp_path: Path) -> None:
    # Given nothing; then that is said
    assert "there are no boards" in boards("list")
    # When boards are added, from the command line and from a file
    said = boards("add", "7", "8", "--every", "10m", "--full-every", "1d", "--priority", "3", "--param", "slug=x")
    assert "2 of 2 boards of bbs added or changed; scanned 10m" in said
    assert "no dispatcher runs" in said
    ids = tmp_path / "ids.txt"
    ids.write_text("9\n\n10\r\n9\n")
    assert json.loads(
        boards("add", "--file", str(ids), "--cron", "0 4 * * *", "--timezone", "Asia/Seoul", "--json")
    ) == {"added": 2}
    boards("add", "11", "--adaptive", "1m..6h")
    # Then they are listed as they were added, and due at once
    found = rows(boards("list", "--json"))
    assert list(found) == sorted(found, key=lambda name: (found[name]["due"], name))
    assert found.keys() == {"7", "8", "9", "10", "11"}
    seven = found["7"]
    assert (seven["every"], seven["full_every_s"], seven["priority"]) == ("10m", 86_400, 3)
    assert (seven["params"], seven["live"], seven["paused"], seven["last"]["at"]) == ({"slug": "x"}, True, False, None)
    assert (found["9"]["cron"], found["9"]["timezone"]) == ("0 4 * * *", "Asia/Seoul")
    assert found["11"]["adaptive"] == {"min": "1m", "max": "6h"}
    # When they are dispatched; then the table says so
    assert dispatch(client) == 5
    table = boards("list")
    assert "no dispatcher runs" not in table
    assert "0 4 * * * Asia/Seoul" in table
    assert table.count("s ago (whole)") == 2
    assert "5 waiting" in table
    assert "no board is due" in boards("list", "--late")
    # When one is changed and one removed
    boards("add", "7", "--every", "1h")
    assert boards("remove", "8").startswith("1 boards removed")
    found = rows(boards("list", "--json"))
    assert (found["7"]["every"], found["7"]["full_every_s"], found["7"]["last"]["number"]) == ("1h", 0, 1)
    assert "8" not in found
    assert json.loads(boards("remove", "7", "9", "10", "11", "--json")) == {"removed": 4}
    assert client.exists(LANE.boards, LANE.schedule, LANE.looks, LANE.looks_of(0)) == 0


def test_boards_are_paused_resumed_and_scanned_now(client: redis.Redis, boards: Say, refused: Say) -> None:
    boards("add", "7", "8", "--every", "1h")
    assert dispatch(client) == 2
    # When one is paused; then it is not due
    assert json.loads(boards("pause", "7", "--json")) == {"paused": 1}
    assert "paused" in boards("list")
    assert (rows(boards("list", "--json"))["7"]["due"], rows(boards("list", "--json"))["7"]["paused"]) == (None, True)
    assert "resume 7" in refused("scan", "7")
    # When it is resumed; then it is due when it would have been
    assert boards("resume", "7").startswith("1 boards resumed")
    assert rows(boards("list", "--json"))["7"]["due"] > rows(boards("list", "--json"))["7"]["last"]["at"]
    assert json.loads(boards("resume", "7", "--json")) == {"resumed": 0}
    # When the other is to be scanned now, whole; then it is, once the scan under way is over
    client.delete(LANE.stage("list").tasks)
    assert "1 boards are due now" in boards("scan", "8", "--full")
    assert list(rows(boards("list", "--late", "--json"))) == ["8"]
    assert dispatch(client) == 1
    assert rows(boards("list", "--json"))["8"]["last"]["full"] is True
    assert rows(boards("list", "--json"))["8"]["last"]["number"] == 2


def test_a_boards_file_is_checked_without_redis(
    tmp_path: Path, threadmill: Operator, boards: Say, refused: Say
) -> None:
    threadmill.set("THREADMILL_REDIS_URL", "redis://127.0.0.1:1/0")
    file = tmp_path / "boards.toml"
    file.write_text('[defaults]\nevery = "10m"\n[[board]]\nids = [1, 2]\n[[board]]\nid = 3\ncron = "0 4 * * *"\n')
    assert "3 boards" in boards("check", str(file))
    assert "2 scanned 10m" in boards("check", str(file))
    assert json.loads(boards("check", str(file), "--json"))["boards"] == 3
    file.write_text('[[board]]\nid = "1"\nevry = "10m"\n')
    assert "entry 1, evry" in refused("check", str(file))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "--every", "1m"], "no ids"),
        (["add", "7"], "exactly one of every, cron and adaptive"),
        (["add", "7", "--every", "soon"], "no duration"),
        (["add", "7", "--every", "1m", "--cron", "* * * * *"], "exactly one"),
        (["add", "7", "--cron", "* * *"], "no cron expression"),
        (["add", "7", "--cron", "* * * * *", "--timezone", "Mars"], "no time zone 'Mars'"),
        (["add", "7", "--adaptive", "1m"], "MIN..MAX"),
        (["add", "7", "--adaptive", "6h..1m"], "min 6h above max 1m"),
        (["add", "7", "--every", "1m", "--priority", "9999999"], "priority lies between"),
        (["add", "7", "--every", "1m", "--source", "cnn"], "'cnn' is not configured"),
        (["add", "../7", "--every", "1m"], "does not match"),
        (["remove", "7"], "there is no board 7 of bbs"),
        (["pause", *"1234567"], "there is no board 1, 2, 3, 4, 5 and 2 more of bbs"),
        (["scan"], "no ids"),
        (["check", "nowhere.toml"], "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    client: redis.Redis, refused: Say, arguments: list[str], said: str
) -> None:
    assert said in refused(*arguments)
    assert client.keys("*") == []


def test_an_entry_that_cannot_be_read_is_shown_and_can_be_removed(
    client: redis.Redis, boards: Say, refused: Say
) -> None:
    client.hset(LANE.boards, mapping={"7": "no JSON", "8": '{"every":"1m"}'})
    client.zadd(LANE.schedule, {"7": 1, "8": 2})
    client.zadd(LANE.looks_of(0), {"7": 1, "8": 2})
    assert "its entry cannot be read" in boards("list")
    assert (rows(boards("list", "--json"))["7"]["readable"], rows(boards("list", "--json"))["8"]["readable"]) == (
        False,
        True,
    )
    assert "remove it" in refused("scan", "7")
    boards("remove", "7")
    assert rows(boards("list", "--json")).keys() == {"8"}


def test_the_status_tells_how_the_schedule_stands(client: redis.Redis, boards: Say, threadmill: Operator) -> None:
    boards("add", "7", "8", "--every", "1h")
    assert "boards of bbs: 2, 2 due, up to 0 s late; no dispatcher runs" in threadmill("status").out
    dispatch(client)
    schedule = threadmill("status", "--json").json["sources"]["bbs"]["schedule"]
    assert (schedule["boards"], schedule["due"], schedule["dispatched"], schedule["dispatchers"]) == (2, 0, 2, 1)


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["add", "7", "--every", "1m"], *([verb, "7"] for verb in ("remove", "pause", "resume", "scan"))],
)
def test_without_redis_that_is_said_in_a_sentence(threadmill: Operator, arguments: list[str]) -> None:
    threadmill.set("THREADMILL_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    ended = threadmill("boards", *arguments)
    assert (ended.status, ended.out) == (3, "")
    assert "does not answer" in ended.err
