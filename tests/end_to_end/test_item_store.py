"""What every store of the item writer must do, run on each of them; and reading a batch, which comes before it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest

from item_writer.batch import Collected, read_batch
from item_writer.stores import DatabaseUnavailable, Store, store_for
from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.store.items import ItemEntry

LANE = Lane("bbs")
T0 = 1_700_000_000_000


def post(post_id: str = "1", **more: object) -> dict[str, object]:
    return {"type": "post", "source": "bbs", "post_id": post_id, **more}


def comment(comment_id: str = "1", **more: object) -> dict[str, object]:
    return {"type": "comment", "source": "bbs", "comment_id": comment_id, "post_id": "1", **more}


def gone(post_id: str = "1") -> dict[str, object]:
    return {"type": "gone", "source": "bbs", "post_id": post_id}


def entry(*items: object, at_ms: int = T0, seq: int = 0, body: bytes | None = None) -> ItemEntry:
    return ItemEntry(LANE, f"{at_ms}-{seq}".encode(), "detail", orjson.dumps(items) if body is None else body)


def read(*entries: ItemEntry) -> list[Collected]:
    """Items that can all be read."""
    batch = read_batch(entries)
    assert batch.rejected == []
    return batch.items


class TestABatch:
    @pytest.mark.parametrize(
        ("bad", "why"),
        [
            (b'{"type":"post","source":"bbs","post_id":"2","title":"a\\u0000b"}', "NUL"),
            (b'{"type":"post","source":"bbs","post_id":"2","views":9223372036854775808}', "64 bits"),
            (b'{"type":"post","source":"bbs","post_id":"2","views":1' + b"0" * 400 + b"}", "infinity"),
            (b'{"type":"post","source":"bbs","post_id":"2","views":true}', "whole number"),
            (b'{"type":"post","source":"bbs","post_id":2}', "text"),
            (b'{"type":"post","source":"bbs","post_id":"2","extra":[]}', "object"),
            (b'{"type":"post","source":"bbs"}', "post_id"),
            (b'{ "type" : ["post"], "a":"]},[{\\"" }', "type"),
            (b"[" * 500 + b"]" * 500, "type"),
            (b"[" * 3000 + b"]" * 3000, "depth"),
            (b'{"type":"post","source":"bbs","post_id":"\\ud800"}', "surrogate"),
            (b'{"type":"post","source":"bbs","post_id":"\xff"}', "UTF-8"),
            (b"null", "type"),
        ],
    )
    def test_a_bad_item_is_rejected_with_its_very_bytes(self, bad: bytes, why: str) -> None:
        # Given a page with a bad item between two good ones
        good = orjson.dumps(post("1")), orjson.dumps(comment('ü,[]{}"\\'))
        page = entry(body=b"[" + good[0] + b" , " + bad + b"\n," + good[1] + b"]")
        # When it is read
        batch = read_batch([page])
        # Then the good ones are there, and the bad one as it was written
        assert [one.position for one in batch.items] == [0, 2]
        assert [item.body for item in batch.rejected] == [bad]
        assert why in batch.rejected[0].error
        assert batch.entries == [(page, 3)]

    @pytest.mark.parametrize("body", [b"", b"{}", b"[1", b"\xff", b"[1]]", b"x[1]", b"{\xff}", b"1", b"[]]["])
    def test_an_entry_that_is_no_array_is_rejected_whole(self, body: bytes) -> None:
        # When an entry that is no JSON array is read, beside a good one
        batch = read_batch([entry(body=body), entry(post())])
        # Then it is rejected with all its bytes, and the other one is there
        assert [item.body for item in batch.rejected] == [body]
        assert len(batch.items) == 1

    def test_a_time_that_cannot_be_is_rejected(self) -> None:
        # When an entry with an impossible time is read, then its batch lives on
        assert len(read_batch([entry(post(), at_ms=2**63), entry(post())]).rejected) == 1


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new/folder/rows.db"


@pytest.fixture
def store(url: str) -> Any:
    made = store_for(url)
    made.open()
    yield made
    made.close()


def rows(url: str, query: str = "SELECT post_id, title FROM posts ORDER BY 1") -> list[Any]:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        return connection.execute(query).fetchall()


def marks(url: str) -> list[Any]:
    return rows(url, "SELECT post_id, title, gone_at FROM posts ORDER BY 1")


class TestAStore:
    def test_all_fields_are_kept(self, store: Store, url: str) -> None:
        # Given a post and a comment with every field set
        whole = post(
            forum_id="f", title="t", body="é🎉", author="a", published_at="2025-01-01T00:00:00Z", views=2**63 - 1,
            comment_count=3, url="u", extra={"deep": [1, "\x00"]},
        )  # fmt: skip
        # When they are written
        assert store.write(read(entry(whole, comment(parent_id="0", body="b"), at_ms=T0 + 7))) == []
        # Then the rows are they, in the columns' order
        at = "2023-11-14T22:13:20.007Z"
        expected = (*list(whole.values())[1:-1], '{"deep":[1,"\\u0000"]}', at, 0)
        assert rows(url, "SELECT * FROM posts") == [(*expected, None)]
        assert rows(url, "SELECT * FROM comments") == [("bbs", "1", "1", "0", None, "b", None, None, "{}", at, 0)]

    def test_older_data_never_replaces_newer(self, store: Store, url: str) -> None:
        # Given a row
        store.write(read(entry(post(title="now"), at_ms=T0, seq=1)))
        # When older data comes late: of an earlier millisecond, of the same one, and the row's own again
        store.write(read(entry(post(title="earlier"), at_ms=T0 - 1, seq=9)))
        store.write(read(entry(post(title="same ms, earlier"), at_ms=T0, seq=0)))
        assert rows(url) == [("1", "now")]
        store.write(read(entry(post(title="now"), at_ms=T0, seq=1)))
        # Then the row is unmoved; and newer data, were it of the same millisecond, replaces it
        assert rows(url) == [("1", "now")]
        store.write(read(entry(post(title="same ms, later"), at_ms=T0, seq=10)))
        assert rows(url) == [("1", "same ms, later")]

    def test_within_a_batch_the_newest_wins(self, store: Store, url: str) -> None:
        # Given a batch that holds a post three times, not in order, twice on one page
        newer = entry(post(title="first of the page"), post(title="last of the page"), at_ms=T0, seq=2)
        # When it is written
        store.write(read(newer, entry(post(title="older"), at_ms=T0, seq=1)))
        # Then the newest is the row
        assert rows(url) == [("1", "last of the page")]

    def test_an_item_the_database_refuses_holds_up_no_other(self, store: Store, url: str) -> None:
        # Given a database with a rule of its own
        rule = "CREATE TRIGGER rule BEFORE INSERT ON posts WHEN NEW.title = 'bad' BEGIN SELECT RAISE(ABORT, 'no!'); END"
        rows(url, rule)
        # When a batch with items that break it is written; one of them is newer than a good one of the same post
        batch = read(
            entry(*(post(str(n), title="good") for n in range(50)), comment()),
            entry(post("7", title="bad"), post("99", title="bad"), at_ms=T0 + 1),
        )
        refused = store.write(batch)
        # Then those two are refused, in the database's words, and all others are rows
        assert sorted((one.collected.item.post_id, "no!" in one.error) for one in refused) == [
            ("7", True),
            ("99", True),
        ]
        assert len(rows(url)) == 50
        assert ("7", "good") in rows(url)
        assert len(rows(url, "SELECT 1 FROM comments")) == 1

    def test_what_the_driver_cannot_send_is_refused(self, store: Store, url: str) -> None:
        # When items with an extra too deep to write, and of an entry with an id beyond 64 bits, are written
        deep: dict[str, Any] = {}
        for _ in range(400):
            deep = {"a": deep}
        body = b'[{"type":"post","source":"bbs","post_id":"2","extra":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}]"
        refused = store.write(read(entry(body=body), entry(post("3"), seq=2**64 - 1), entry(post("1"))))
        # Then they alone are refused
        assert sorted(one.collected.item.post_id for one in refused) == ["2", "3"]
        assert [row[0] for row in rows(url)] == ["1"]

    def test_a_locked_database_takes_all_or_nothing(self, store: Store, url: str) -> None:
        # Given a database that another holds
        holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        # When a batch is written, then the error says that it may be tried again
        with pytest.raises(DatabaseUnavailable, match="locked"):
            store.write(read(entry(post())))
        # And once it is free, the same batch goes in
        holder.execute("ROLLBACK")
        holder.close()
        assert store.write(read(entry(post()))) == []
        assert len(rows(url)) == 1

    def test_opening_again_keeps_what_is_there(self, store: Store, url: str) -> None:
        # Given a database with a row
        store.write(read(entry(post(title="t"))))
        # When another store opens it
        other = store_for(url)
        other.open()
        other.close()
        # Then the row is there, and comments are found by their post
        assert rows(url) == [("1", "t")]
        plan = rows(url, "EXPLAIN QUERY PLAN SELECT * FROM comments WHERE source = 'bbs' AND post_id = '1'")
        assert "comments_of_post" in str(plan)


class TestAPostThatIsGone:
    """`gone_at`: when the site was found to have it no more."""

    def test_is_marked_once_and_keeps_what_was_collected(self, store: Store, url: str) -> None:
        # Given a post; when it is found to be gone, twice
        store.write(read(entry(post(title="t"))))
        store.write(read(entry(gone(), at_ms=T0 + 1000)))
        store.write(read(entry(gone(), at_ms=T0 + 2000)))
        # Then it has its title, and the time it was found to be gone first
        assert marks(url) == [("1", "t", "2023-11-14T22:13:21.000Z")]

    def test_stands_again_when_it_is_collected_again(self, store: Store, url: str) -> None:
        # Given a post that was gone; when it is collected later
        store.write(read(entry(post(title="t")), entry(gone(), at_ms=T0 + 1000)))
        store.write(read(entry(post(title="back"), at_ms=T0 + 2000)))
        assert marks(url) == [("1", "back", None)]
        # And when it is gone again; then since that time
        store.write(read(entry(gone(), at_ms=T0 + 3000)))
        assert marks(url) == [("1", "back", "2023-11-14T22:13:23.000Z")]

    @pytest.mark.parametrize("together", [True, False])
    def test_whatever_comes_late_changes_nothing(self, store: Store, url: str, together: bool) -> None:
        # Given what was found in turn: the post, that it is gone, and, of another post, that it is there again
        found = [
            entry(post("1", title="t"), post("2", title="old"), at_ms=T0),
            entry(post("1", title="between"), at_ms=T0 + 500),
            entry(gone("2"), at_ms=T0 + 1000),
            entry(post("2", title="new"), at_ms=T0 + 2000),
            entry(gone("1"), at_ms=T0 + 2000),
        ]
        # When it arrives in another order, and some of it twice
        late = [found[0], found[4], found[1], found[3], found[2], found[0]]
        for batch in [late] if together else [[one] for one in late]:
            store.write(read(*batch))
        # Then the newest counts
        assert marks(url) == [("1", "between", "2023-11-14T22:13:22.000Z"), ("2", "new", None)]

    def test_that_nobody_knows_changes_nothing(self, store: Store, url: str) -> None:
        assert store.write(read(entry(gone("7"), gone("8"), post("1")))) == []
        assert marks(url) == [("1", None, None)]

    def test_is_marked_even_where_its_neighbours_are_refused(self, store: Store, url: str) -> None:
        # Given a database with a rule of its own
        rows(
            url, "CREATE TRIGGER rule BEFORE INSERT ON posts WHEN NEW.title = 'bad' BEGIN SELECT RAISE(ABORT, ''); END"
        )
        # When a batch that breaks it tells of a post, and that it is gone
        refused = store.write(read(entry(post("1"), post("2", title="bad")), entry(gone("1"), at_ms=T0 + 1000)))
        # Then that is known
        assert len(refused) == 1
        assert marks(url) == [("1", None, "2023-11-14T22:13:21.000Z")]

    def test_cannot_be_marked_in_the_table_of_an_older_release(self, url: str, store: Store) -> None:
        # Given a table without the column; when a store opens it, then it says what to do
        rows(url, "ALTER TABLE posts DROP COLUMN gone_at")
        with pytest.raises(ConfigError, match="ALTER TABLE posts ADD COLUMN gone_at TEXT") as error:
            store_for(url).open()
        # And when that is done, it opens
        rows(url, str(error.value).rpartition(": ")[2])
        store_for(url).open()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://me:hunter2@db/rows", "must begin with one of"),
        ("sqlite:///", "in memory"),
        ("sqlite://", "in memory"),
        ("postgresql+nodriver://me:hunter2@db/rows", "not an SQLAlchemy URL"),
        ("sqlite:////dev/null/rows.db", "cannot be made"),
        ("hunter2", "must begin with one of"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_sentence_without_its_password(url: str, says: str) -> None:
    # When a store is asked for and opened, then the error says what to do, and no secret
    with pytest.raises(ConfigError, match=says) as error:
        store_for(url).open()
    assert "hunter2" not in str(error.value)
