"""The store for SQL databases: SQLite and PostgreSQL, through SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from item_writer.batch import Collected
from item_writer.refusals import DRIVER_ERRORS, is_refusal, sentence
from item_writer.statements import Mark, Row, Statement, Upsert
from item_writer.stores import DatabaseUnavailable, Refused
from item_writer.tables import comments, metadata, posts
from threadmill.model.errors import ConfigError
from threadmill.model.items import Comment, Gone, Item, Post

DIALECTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""Databases with `INSERT … ON CONFLICT`, each with its statement."""
BUSY_S = 1.0
"""How long SQLite waits for a lock within a call, s. Short: a signal to stop is heard between calls only."""


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
        insert = DIALECTS[self._engine.dialect.name]
        # In this order: what a batch collected is there before posts of it are marked as gone.
        self._statements: dict[type[Item], Statement] = {
            Post: Upsert(posts, insert),
            Comment: Upsert(comments, insert),
            Gone: Mark(),
        }

    def open(self) -> None:
        """Create the file's folder, the tables and their indexes if they are missing."""
        self._make_folder()
        try:
            with self._engine.begin() as connection:
                for table in metadata.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                    for index in table.indexes:
                        connection.execute(CreateIndex(index, if_not_exists=True))
                    _check_columns(connection, table)
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
                for cls, writing in self._statements.items():
                    if chosen := writing.chosen((one, row) for one, row in rows if type(one.item) is cls):
                        connection.execute(writing.statement, chosen)
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
        rows.sort(key=lambda pair: isinstance(pair[0].item, Gone))  # these last, as in a whole batch
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
                connection.execute(self._statements[type(one.item)].statement, [row])
        except (SQLAlchemyError, *DRIVER_ERRORS) as error:
            if not is_refusal(error):
                raise _unavailable(error) from None
            return sentence(error)
        return ""

    def _row(self, one: Collected, refused: list[Refused]) -> Row | None:
        try:
            return self._statements[type(one.item)].row(one)
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


def _unavailable(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"the database takes nothing now: {sentence(error)}")


def _check_columns(connection: Connection, table: Table) -> None:
    """`ConfigError` if the table was made by a release that did not have all of its columns."""
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    missing = [column for column in table.columns if column.name not in there]
    if missing:
        changes = "; ".join(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.type}" for column in missing)
        raise ConfigError(
            f"the table {table.name} of THREADMILL_STORE_URL was made by an older release; add what it lacks and start "
            f"again: {changes}"
        )


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
