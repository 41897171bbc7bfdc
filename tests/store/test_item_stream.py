"""The item streams: each page's items reach each store once, and leave when every store has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from threadmill.model.errors import StoreUnavailable
from threadmill.model.keys import Lane
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.store.connection import connect
from threadmill.store.items import SILENCE_MS, ItemEntry, ItemStreams, Rejected
from threadmill.store.streams import PENDING

LANE, OTHER = Lane("bbs"), Lane("bbs", 1)
Reader = Callable[..., ItemStreams]


@pytest.fixture
def reader(client: redis.Redis) -> Reader:
    """Consumers of the groups of stores."""

    def make(consumer: str = "one", group: str = "sql", lanes: tuple[Lane, ...] = (LANE,)) -> ItemStreams:
        streams = ItemStreams(client, lanes, group, consumer)
        streams.ensure_groups()
        return streams

    return make


def collected(client: redis.Redis, body: bytes = b"[1]", lane: Lane = LANE) -> bytes:
    """The id of a page's items in the stream."""
    entry_id: bytes = client.xadd(lane.items, {"s": "detail", "i": body})
    return entry_id


def pending(client: redis.Redis, group: str = "sql") -> int:
    return int(client.xpending(LANE.items, group)["pending"])


class TestReading:
    def test_what_was_collected_before_the_first_store_came_is_read(self, client: redis.Redis, reader: Reader) -> None:
        # Given a page's items, collected before there was any store
        entry_id = collected(client, b"[1,2]")
        # When a store reads
        entries = reader().read(10)
        # Then it has them, with the time on Redis's clock
        assert entries == [ItemEntry(LANE, entry_id, "detail", b"[1,2]")]
        assert entry_id == f"{entries[0].at_ms}-{entries[0].seq}".encode()

    def test_lanes_share_a_batch(self, client: redis.Redis, reader: Reader) -> None:
        # Given two lanes, one with a long backlog
        for _ in range(20):
            collected(client)
        collected(client, lane=OTHER)
        # When a batch of both is read
        lanes = [entry.lane for entry in reader(lanes=(LANE, OTHER)).read(10)]
        # Then neither is passed over
        assert (lanes.count(LANE), lanes.count(OTHER)) == (5, 1)

    def test_a_group_that_is_gone_is_made_again(self, client: redis.Redis, reader: Reader) -> None:
        # Given a store whose stream was deleted while it ran
        streams = reader()
        client.flushall()
        collected(client)
        # When it reads again
        read = [*streams.read(10), *streams.read(10)]
        # Then it goes on, from the beginning
        assert len(read) == 1

    def test_what_was_deleted_while_pending_is_forgotten(self, client: redis.Redis, reader: Reader) -> None:
        # Given pages that were delivered, and all but the last trimmed away from outside
        streams = reader()
        ids = [collected(client) for _ in range(5)]
        streams.read(10)
        client.xtrim(LANE.items, maxlen=1, approximate=False)
        # When the store reads what is pending, in batches that hold the deleted ones only
        entries = streams.read(2, start=PENDING)
        # Then it finds what is left, and nothing stays pending for ever
        assert [entry.id for entry in entries] == ids[-1:]
        assert pending(client) == 1

    def test_redis_that_does_not_answer_is_one_error(self, tmp_path: Path) -> None:
        # Given a Redis that goes away
        with EmbeddedRedis(tmp_path) as server:
            streams = ItemStreams(connect(server.url), [LANE], "sql", "one")
            streams.ensure_groups()
        # When it is asked for anything, then the error is ours, not the client library's
        entry = ItemEntry(LANE, b"1-1", "detail", b"[]")
        for ask in (
            lambda: streams.read(1),
            lambda: streams.claim(0),
            lambda: streams.settle([(entry, 0)]),
            streams.leave,
        ):
            with pytest.raises(StoreUnavailable):
                ask()


class TestClaiming:
    def test_entries_of_a_dead_consumer_are_taken_over(self, client: redis.Redis, reader: Reader) -> None:
        # Given entries that a consumer took and never settled
        ids = [collected(client) for _ in range(3)]
        reader("dead").read(10)
        # When another claims what is idle
        streams = reader("alive")
        assert streams.claim(60_000) == 0
        assert streams.claim(0) == 3
        # Then it reads them as its own
        assert [entry.id for entry in streams.read(10, start=PENDING)] == ids

    def test_a_stale_entry_behind_many_fresh_ones_is_found(self, client: redis.Redis, reader: Reader) -> None:
        # Given one stale entry, pending behind more fresh ones than Redis looks at in one call
        pipeline = client.pipeline()
        for _ in range(3_000):
            pipeline.xadd(LANE.items, {"s": "detail", "i": "[]"})
        stale = pipeline.execute()[-1]
        reader("busy").read(5_000)
        client.xclaim(LANE.items, "sql", "busy", 0, [stale], idle=600_000)
        # When another claims what is stale
        streams = reader("alive")
        # Then it finds that one, and only that one
        assert streams.claim(60_000) == 1
        assert [entry.id for entry in streams.read(10, start=PENDING)] == [stale]


class TestSettling:
    def test_settled_entries_leave_and_count_once(self, client: redis.Redis, reader: Reader) -> None:
        # Given entries of two lanes
        streams = reader(lanes=(LANE, OTHER))
        collected(client)
        collected(client, lane=OTHER)
        entries = [(entry, 3) for entry in streams.read(10)]
        # When they are settled twice
        first, second = streams.settle(entries), streams.settle(entries)
        # Then it counts once, and the streams are empty
        assert (first, second) == (2, 0)
        assert client.hgetall(LANE.items_stats) == {b"settled:sql": b"3"}
        assert (client.xlen(LANE.items), client.xlen(OTHER.items), pending(client)) == (0, 0, 0)

    def test_a_rejected_item_is_parked_once_with_its_bytes(self, client: redis.Redis, reader: Reader) -> None:
        # Given an entry with an item no store could take
        streams = reader()
        entry_id = collected(client, b'[{"x":"\xff\\u0000"}]')
        entry = streams.read(1)[0]
        # When it is settled twice
        for _ in range(2):
            streams.settle([(entry, 1)], [Rejected(entry, "is no item", b'{"x":"\xff\\u0000"}')])
        # Then it is parked once, as it was
        dead = client.xrange(LANE.items_dead)
        assert [fields for _, fields in dead] == [
            {b"group": b"sql", b"entry": entry_id, b"error": b"is no item", b"bytes": b'{"x":"\xff\\u0000"}'}
        ]

    def test_an_entry_stays_until_every_store_has_it(self, client: redis.Redis, reader: Reader) -> None:
        # Given two stores and three entries
        sql, lines = reader(), reader(group="jsonl")
        ids = [collected(client) for _ in range(3)]
        # When one settles all, and the other the last one only
        sql.settle([(entry, 1) for entry in sql.read(10)])
        entries = lines.read(10)
        lines.settle([(entries[2], 1)])
        # Then none goes before the slower store has those before it
        assert [entry_id for entry_id, _ in client.xrange(LANE.items)] == ids
        lines.settle([(entries[0], 1)])
        assert [entry_id for entry_id, _ in client.xrange(LANE.items)] == ids[1:]
        lines.settle([(entries[1], 1)])
        assert client.xlen(LANE.items) == 0

    def test_what_waited_for_a_store_that_was_removed_goes(self, client: redis.Redis, reader: Reader) -> None:
        # Given entries one store has settled, kept for another that never read
        sql = reader()
        reader(group="jsonl")
        for _ in range(3):
            collected(client)
        sql.settle([(entry, 1) for entry in sql.read(10)])
        assert client.xlen(LANE.items) == 3
        # When the other store's group is removed, and the next entry settled
        client.xgroup_destroy(LANE.items, "jsonl")
        collected(client)
        sql.settle([(entry, 1) for entry in sql.read(10)])
        # Then nothing is left behind
        assert client.xlen(LANE.items) == 0

    def test_settling_in_a_stream_that_was_deleted_is_no_error(self, client: redis.Redis, reader: Reader) -> None:
        # Given an entry that was read, and then everything deleted
        streams = reader()
        collected(client)
        entry = streams.read(1)[0]
        client.flushall()
        # When it is settled, then there is nothing to settle, and nothing comes into being
        assert streams.settle([(entry, 1)]) == 0
        assert client.keys() == []


class TestLeaving:
    def test_a_consumer_leaves_only_with_nothing_pending(self, client: redis.Redis, reader: Reader) -> None:
        # Given a consumer with an entry pending
        streams = reader()
        collected(client)
        entry = streams.read(1)[0]
        # When it leaves, then it stays, and so does its entry
        streams.leave()
        assert pending(client) == 1
        # And when it has settled, it goes
        streams.settle([(entry, 1)])
        streams.leave()
        assert client.xinfo_consumers(LANE.items, "sql") == []

    def test_consumers_that_ended_long_ago_are_forgotten(
        self, client: redis.Redis, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a consumer that was killed with nothing pending, and one with an entry
        streams = reader("new")
        client.xgroup_createconsumer(LANE.items, "sql", "idle")
        collected(client)
        reader("holder").read(1)
        # When consumers are forgotten: not yet, and once they have been silent for long
        streams.forget_silent()
        assert len(client.xinfo_consumers(LANE.items, "sql")) == 2
        monkeypatch.setattr("threadmill.store.items.SILENCE_MS", 0)
        assert SILENCE_MS > 600_000
        streams.forget_silent()
        # Then the one without entries is gone, the other is not
        assert [info["name"] for info in client.xinfo_consumers(LANE.items, "sql")] == [b"holder"]
