"""The store for SQL databases: SQLite and PostgreSQL, through SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, Table, and_, create_engine, event, or_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from item_writer.batch import Collected
from item_writer.refusals import DRIVER_ERRORS, is_refusal, sentence
from item_writer.stores import DatabaseUnavailable, Refused
from item_writer.tables import comments, metadata, posts
from threadmill.model.errors import ConfigError
from threadmill.model.items import Comment, Post

DIALECTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""Databases with `INSERT … ON CONFLICT`, each with its statement."""
BUSY_S = 1.0
"""How long SQLite waits for a lock within a call, s. Short: a signal to stop is heard between calls only."""

Row = dict[str, Any]


class SqlStore:
    """Rows of `posts` and `comments`; a batch is one transaction."""

    group = "sql"

    def __init__(self, url: str) -> None:
        """`url` is SQLAlchemy's; nothing is opened yet. Raises `ConfigError`, which never shows the URL."""
        try:
            self._engine = create_engine(url, hide_parameters=True, pool_size=1, pool_pre_ping=True)
        except (ArgumentError, NoSuchModuleError, TypeError, ValueError):
            raise ConfigError(
                "THREADMILL_STORE_URL is not an SQLAlchemy URL, e.g. sqlite:///data/threadmill.db"
            ) from None
        except ImportError as error:
            raise ConfigError(f"the database of THREADMILL_STORE_URL needs the Python package {error.name}") from None
        if self._engine.dialect.name == "sqlite":
            _prepare_sqlite(self._engine)
        self._tables = {Post: _Upsert(posts, self._engine), Comment: _Upsert(comments, self._engine)}

    def open(self) -> None:
        """Create the file's folder, the tables and their indexes if they are missing."""
        self._make_folder()
        try:
            with self._engine.begin() as connection:
                for table in metadata.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                    for index in table.indexes:
                        connection.execute(CreateIndex(index, if_not_exists=True))
        except SQLAlchemyError as error:
            raise DatabaseUnavailable(f"the database cannot be opened: {sentence(error)}") from None

    def write(self, items: Sequence[Collected]) -> list[Refused]:
        """Upsert in one transaction; where the data itself is refused, item by item."""
        refused: list[Refused] = []
        rows = [(one, row) for one in items if (row := self._row(one, refused)) is not None]
        if not rows:
            return refused
        try:
            with self._engine.begin() as connection:
                for cls, upsert in self._tables.items():
                    if newest := upsert.newest((one, row) for one, row in rows if type(one.item) is cls):
                        connection.execute(upsert.statement, newest)
            return refused
        except (SQLAlchemyError, *DRIVER_ERRORS) as error:
            if not is_refusal(error):
                raise _unavailable(error) from None
        return refused + self._write_each(rows)

    def close(self) -> None:
        self._engine.dispose()

    def _write_each(self, rows: list[tuple[Collected, Row]]) -> list[Refused]:
        """Every item by itself, in one transaction, so that only those that are refused are left out."""
        refused = []
        # Newest first: if it is refused, the one before it may still be written; if not, that one changes nothing.
        rows = sorted(rows, key=lambda pair: pair[0].age, reverse=True)
        try:
            with self._engine.begin() as connection:
                for one, row in rows:
                    if error := self._refusal(connection, one, row):
                        refused.append(Refused(one, f"the database refused it: {error}"))
        except SQLAlchemyError as error:
            raise _unavailable(error) from None
        return refused

    def _refusal(self, connection: Connection, one: Collected, row: Row) -> str:
        try:
            with connection.begin_nested():
                connection.execute(self._tables[type(one.item)].statement, [row])
        except (SQLAlchemyError, *DRIVER_ERRORS) as error:
            if not is_refusal(error):
                raise _unavailable(error) from None
            return sentence(error)
        return ""

    def _row(self, one: Collected, refused: list[Refused]) -> Row | None:
        try:
            return self._tables[type(one.item)].row(one)
        except (TypeError, ValueError) as error:
            refused.append(Refused(one, f"its extra cannot be written as JSON: {error}"))
            return None

    def _make_folder(self) -> None:
        if self._engine.dialect.name != "sqlite":
            return
        file = self._engine.url.database
        if not file or file == ":memory:":
            raise ConfigError("THREADMILL_STORE_URL names no file: a database in memory would be lost")
        if not file.startswith("file:"):
            try:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"the folder of {file} (THREADMILL_STORE_URL) cannot be made: {error.strerror}"
                ) from None


class _Upsert:
    """Writing one table: rows of it, and the statement that keeps the newest."""

    def __init__(self, table: Table, engine: Engine) -> None:
        self._key = [column.name for column in table.primary_key]
        self._names = [c.name for c in table.columns if c.name not in ("extra", "collected_at", "collected_seq")]
        self._values = attrgetter(*self._names)
        insert = DIALECTS[engine.dialect.name](table)
        new = insert.excluded
        self.statement = insert.on_conflict_do_update(
            index_elements=self._key,
            set_={column.name: new[column.name] for column in table.columns if not column.primary_key},
            where=or_(
                new.collected_at > table.c.collected_at,
                and_(new.collected_at == table.c.collected_at, new.collected_seq > table.c.collected_seq),
            ),
        )

    def row(self, one: Collected) -> Row:
        """Raises `TypeError` for an `extra` that is nested too deeply."""
        row: Row = dict(zip(self._names, self._values(one.item), strict=True))
        row["extra"] = orjson.dumps(one.item.extra or {}).decode()
        row["collected_at"], row["collected_seq"] = one.at, one.seq
        return row

    def newest(self, rows: Iterable[tuple[Collected, Row]]) -> list[Row]:
        """The newest row of each key, by key: writers that lock rows in one order cannot block each other."""
        best: dict[tuple[str, ...], tuple[Collected, Row]] = {}
        key = attrgetter(*self._key)
        for one, row in rows:
            known = best.get(at := key(one.item))
            if known is None or one.age > known[0].age:
                best[at] = (one, row)
        return [best[at][1] for at in sorted(best)]


def _unavailable(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"the database takes nothing now: {sentence(error)}")


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: Any) -> None:
        # The driver's own transactions begin late and not before a savepoint; ours begin where SQLAlchemy says.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
        # Readers are not held up by the writer. With FULL a commit outlives a power cut: what is settled leaves Redis.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        # The lock is taken here or not at all: a transaction that read first could not wait for it.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
