"""Dispatchers on a real Redis, round by round: what they do with many boards, little room, and each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis

from dispatcher.dispatcher import Dispatcher
from store.workshop import Workshop
from threadmill.model.board import Board
from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.interval import Adaptive, Every
from threadmill.model.keys import Lane
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.ops import board_list, boards, report
from threadmill.ops.boards import Loaded
from threadmill.ops.deployment import Deployment
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.stop import Stop
from threadmill.store.calls import run
from threadmill.store.schedule import BATCH, Change, Schedule


class Fleet:
    """Some dispatchers of one deployment, and the workshop of the list stage in each lane."""

    def __init__(self, redis_server: EmbeddedRedis, *, partitions: int = 1, threshold: int = 10_000) -> None:
        config = Config(redis_url=redis_server.url, sources=("bbs",), partitions=partitions)  # type: ignore[arg-type]
        self.deployment = Deployment.connected(config)
        self.dispatchers = [self._dispatcher(f"d{n}", threshold) for n in range(3)]
        self.shops = [Workshop(self.deployment.client, LIST) for _ in self.deployment.lanes()]
        for shop, lane in zip(self.shops, self.deployment.lanes(), strict=True):
            shop.lane, shop.store = lane, self.deployment.store(lane, LIST)
            shop.keys = shop.store.keys

    def _dispatcher(self, name: str, threshold: int) -> Dispatcher:
        lanes = self.deployment.lanes()
        return Dispatcher(self.deployment.client, lanes, Stop(), name=name, threshold=threshold, reload=lambda: None)

    def round(self) -> int:
        """One round of each dispatcher: how many scans were dispatched."""
        return sum(dispatcher.round()[0] for dispatcher in self.dispatchers)

    def put(self, *ids: str, **plan: object) -> None:
        plan = {"interval": Every(3600), **plan}
        boards.put(self.deployment, [Board("bbs", each, **plan) for each in ids])  # type: ignore[arg-type]

    def rows(self) -> dict[str, board_list.Row]:
        return {row.id: row for row in board_list.rows(self.deployment)}

    def board(self, name: str) -> Board:
        board = self.rows()[name].board
        assert board is not None
        return board

    def scan(self, *posts: str) -> list[str]:
        """Do all list tasks that wait, each with one page that hands these posts down; their boards."""
        scanned = []
        for shop in self.shops:
            for entry in shop.read():
                scanned.append(entry.fields[b"k"].decode())
                shop.admit(entry, b"page")
            for lease in shop.lease(1000):
                shop.commit(lease, subtasks=[Task("detail", "bbs", post) for post in posts])
        return scanned

    def make_due(self, *ids: str) -> None:
        boards.scan(self.deployment, self.deployment.source("bbs"), ids)


@pytest.fixture
def fleet(client: redis.Redis, redis_server: EmbeddedRedis) -> Iterator[Fleet]:
    fleet = Fleet(redis_server)
    yield fleet
    for shop in fleet.shops:
        shop.audit()


def test_a_thousand_boards_are_scanned_once_each(fleet: Fleet) -> None:
    # Given more boards than fit into a few batches; when three dispatchers take turns
    ids = [str(n) for n in range(1000)]
    fleet.put(*ids)
    assert sum(fleet.round() for _ in range(7)) == 1000
    # Then each has one task, under a job of its own
    entries = fleet.shops[0].read(count=2000)
    assert Counter(entry.fields[b"k"].decode() for entry in entries) == Counter(ids)
    assert len({entry.fields[b"j"] for entry in entries}) == 1000
    assert fleet.round() == 0


def test_boards_of_all_partitions_are_scanned_in_their_lanes(client: redis.Redis, redis_server: EmbeddedRedis) -> None:
    fleet = Fleet(redis_server, partitions=4)
    fleet.put(*(str(n) for n in range(40)))
    assert fleet.round() == 40
    source = fleet.deployment.source("bbs")
    for shop in fleet.shops:
        keys = [entry.fields[b"k"].decode() for entry in shop.read()]
        assert len(keys) > 3
        assert {fleet.deployment.lane_of(source, key) for key in keys} == {shop.lane}
        shop.audit()
    state = report.status(fleet.deployment)["sources"]["bbs"]["schedule"]
    assert (state["boards"], state["due"], state["dispatched"], state["dispatchers"]) == (40, 0, 40, 3)


def test_no_more_is_dispatched_than_the_threshold_allows(client: redis.Redis, redis_server: EmbeddedRedis) -> None:
    # Given ten boards that are due, two of them of larger priority, and a threshold of three
    fleet = Fleet(redis_server, threshold=3)
    fleet.put(*(str(n) for n in range(8)))
    fleet.put("a", "b", priority=5)
    # When dispatchers look again and again; then three wait in the stage, those of larger priority among them
    assert [fleet.round() for _ in range(3)] == [3, 0, 0]
    state = report.status(fleet.deployment)["sources"]["bbs"]["schedule"]
    assert (state["due"], state["dispatched"], state["skipped_full"] >= 6) == (7, 3, True)
    assert sum(row.late_ms > 0 for row in fleet.rows().values()) == 7
    # When they are scanned, in three goes; then the others follow, late and each once
    scanned = fleet.scan()
    assert {"a", "b"} < set(scanned)
    while fleet.round():
        scanned += fleet.scan()
    assert Counter(scanned) == Counter([*"01234567", "a", "b"])
    fleet.shops[0].audit()


def test_a_board_that_is_being_scanned_is_scanned_again_only_after_that(fleet: Fleet) -> None:
    # Given a board whose task waits; when it is due again
    fleet.put("7")
    assert fleet.round() == 1
    fleet.make_due("7")
    # Then it is not dispatched a second time, however often anybody looks, but it is late, and that is counted
    assert [fleet.round() for _ in range(5)] == [0] * 5
    state = report.status(fleet.deployment)["sources"]["bbs"]["schedule"]
    assert (state["due"], state["skipped_busy"]) == (1, 1)
    # When its scan is over, and the look comes that was put off
    assert fleet.scan() == ["7"]
    fleet.make_due("7")
    assert fleet.round() == 1
    assert fleet.board("7").last.number == 2


def test_what_a_scan_brought_is_seen_and_moves_an_adaptive_board(fleet: Fleet, client: redis.Redis) -> None:
    # Given an adaptive board that brings ten posts, then none
    fleet.put("7", interval=Adaptive(60, 3600))
    fleet.round()
    fleet.scan(*(f"p{n}" for n in range(10)))
    fleet.make_due("7")
    fleet.round()
    assert (fleet.board("7").last.brought, fleet.board("7").last.pace_s) == (10, 0)
    fleet.scan()
    # When the scan is looked at, which is before the board is due
    lane = fleet.deployment.lanes()[0]
    client.zadd(lane.looks_of(0), {"7": 1})
    assert fleet.round() == 0
    # Then it is due at twice its interval
    last = fleet.board("7").last
    assert (last.brought, last.pace_s, last.open) == (0, 120, False)
    assert fleet.rows()["7"].due_ms == last.at_ms + 120_000


def test_an_unreadable_board_is_nobodys_trouble_but_its_own(
    fleet: Fleet, client: redis.Redis, capfd: pytest.CaptureFixture[str]
) -> None:
    # Given boards of which one has an entry nobody can read, and ids that only Redis knows
    fleet.put("7", "8", "9")
    lane = fleet.deployment.lanes()[0]
    client.hset(lane.boards, "8", "no JSON")
    client.zadd(lane.looks_of(0), {"only looked at": 1})
    client.zadd(lane.schedule, {"only due": 1})
    # And one whose id is no text
    client.hset(lane.boards, b"\xff", b'{"every":"10m"}')
    client.zadd(lane.looks_of(0), {b"\xff": 1})
    client.zadd(lane.schedule, {b"\xff": 1})
    # When dispatchers look; then the others are scanned
    assert fleet.round() == 2
    assert sorted(fleet.scan()) == ["7", "9"]
    assert client.zscore(lane.looks_of(0), "only looked at") is None
    # And it is listed, and can be removed
    assert fleet.rows()["8"].board is None
    source = fleet.deployment.source("bbs")
    with pytest.raises(ConfigError, match="remove it"):
        boards.pause(fleet.deployment, source, ["8"])
    assert boards.remove(fleet.deployment, source, ["8"]) == 1
    client.zrem(lane.schedule, "only due")


# The boards file ------------------------------------------------------------------------------------------------------


def test_a_file_is_loaded_as_often_as_one_likes(fleet: Fleet) -> None:
    # Given a file with three boards, one of them paused
    plans = [Board("bbs", "1", Every(60)), Board("bbs", "2", Every(60)), Board("bbs", "3", Every(60), enabled=False)]
    assert boards.load(fleet.deployment, plans) == Loaded(added=3)
    assert fleet.round() == 2
    before = fleet.rows()
    # When it is loaded again; then nothing changes
    assert boards.load(fleet.deployment, plans) == Loaded(kept=3)
    assert {name: (row.board, row.due_ms) for name, row in fleet.rows().items()} == {
        name: (row.board, row.due_ms) for name, row in before.items()
    }
    # When it changes; then what left it goes, what is other is other, and what a scan brought stays
    fleet.put("live", live=True)
    changed = [Board("bbs", "1", Every(60), priority=5), Board("bbs", "3", Every(60)), Board("bbs", "4", Every(60))]
    assert boards.load(fleet.deployment, changed) == Loaded(added=1, changed=2, removed=1)
    rows = fleet.rows()
    assert rows.keys() == {"1", "3", "4", "live"}
    assert rows["1"].due_ms == before["1"].due_ms
    assert fleet.board("1").last == before["1"].board.last  # type: ignore[union-attr]
    assert fleet.round() == 3
    # When the file has a board that was added by hand; then it is the file's
    assert boards.load(fleet.deployment, [Board("bbs", "live", Every(60))]) == Loaded(changed=1, removed=3)
    assert boards.load(fleet.deployment, []) == Loaded(removed=1)


def test_another_interval_counts_from_the_last_scan(fleet: Fleet) -> None:
    # Given a board that was scanned just now, to be scanned again in an hour
    fleet.put("7", interval=Adaptive(3600, 7200))
    fleet.round()
    at_ms = fleet.board("7").last.at_ms
    # When it is to be scanned every two minutes, or was to be long ago
    fleet.put("7", interval=Adaptive(120, 240))
    assert fleet.rows()["7"].due_ms == at_ms + 120_000
    lane = fleet.deployment.lanes()[0]
    (read,) = Schedule(lane).read(fleet.deployment.client, ["7"])
    old = replace(fleet.board("7"), last=replace(fleet.board("7").last, at_ms=1000))
    assert run(fleet.deployment.client, Schedule(lane).plan([Change(read, old.to_json(), 10**15, 10**15)])) == [True]
    fleet.put("7", interval=Adaptive(60, 240))
    # Then it is due so long after its last scan, and at once in the second case, and not late
    row = fleet.rows()["7"]
    assert row.due_ms is not None
    assert row.now_ms - 5000 < row.due_ms <= row.now_ms


def test_a_board_that_others_change_meanwhile_is_read_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given boards that a dispatcher dispatches between the reading and the writing of an operator
    ids = [str(n) for n in range(2 * BATCH + 1)]
    fleet.put(*ids)
    reading = Schedule.read

    def read_and_dispatch(*arguments: object) -> object:
        found = reading(*arguments)  # type: ignore[arg-type]
        while fleet.round():
            pass
        return found

    monkeypatch.setattr(Schedule, "read", read_and_dispatch)
    # When they are paused; then none is left out, and what was dispatched is not forgotten
    source = fleet.deployment.source("bbs")
    assert boards.pause(fleet.deployment, source, ids) == len(ids)
    monkeypatch.undo()
    rows = fleet.rows()
    assert all(row.due_ms is None and row.board and row.board.last.number == 1 for row in rows.values())


def test_boards_in_a_lane_where_they_do_not_belong_move(client: redis.Redis, redis_server: EmbeddedRedis) -> None:
    # Given boards loaded with one partition; when they are loaded with four
    plans = [Board("bbs", str(n), Every(60)) for n in range(20)]
    boards.load(Fleet(redis_server).deployment, plans)
    fleet = Fleet(redis_server, partitions=4)
    boards.load(fleet.deployment, plans)
    # Then each is in one lane, its own
    assert sum(client.hlen(lane.boards) for lane in fleet.deployment.lanes()) == 20
    assert client.hlen(Lane("bbs").boards) < 20


def test_what_an_operator_paused_stays_paused_when_the_file_is_read_again(fleet: Fleet) -> None:
    # Given a file with two boards, the second switched off there, and an operator who pauses the first
    plans = [Board("bbs", "1", Every(60)), Board("bbs", "2", Every(60), enabled=False)]
    source = fleet.deployment.source("bbs")
    boards.load(fleet.deployment, plans)
    assert boards.pause(fleet.deployment, source, ["1"]) == 1
    # When the file is read again, other than before; then both are left alone
    assert boards.load(fleet.deployment, [replace(plan, priority=1) for plan in plans]) == Loaded(changed=2)
    assert fleet.round() == 0
    # When they are resumed; then the first is scanned, and of the second it is said where it is switched off
    assert boards.resume(fleet.deployment, source, ["1"]) == 1
    assert fleet.round() == 1
    with pytest.raises(ConfigError, match="enabled = false"):
        boards.resume(fleet.deployment, source, ["2"])
