"""How items become rows: a statement for each type, and the values it wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Protocol

import orjson
from sqlalchemy import BigInteger, Executable, Table, Text, and_, bindparam, case, or_

from item_writer.batch import Collected
from item_writer.tables import posts

Row = dict[str, Any]
_OWN = ("extra", "collected_at", "collected_seq", "gone_at")
"""Columns that are no plain fields of an item."""


class Statement(Protocol):
    """Writes the items of one type."""

    statement: Executable

    def row(self, one: Collected) -> Row:
        """The statement's values for an item; raises `TypeError` or `ValueError` if it cannot be written."""

    def chosen(self, rows: Iterable[tuple[Collected, Row]]) -> list[Row]:
        """The rows of a batch that count, by key: writers that lock rows in one order cannot block each other."""


class Upsert:
    """Keeps the newest of each post or comment. A post that was collected is not gone, unless that was found later."""

    def __init__(self, table: Table, insert: Callable[[Table], Any]) -> None:
        self._key = [column.name for column in table.primary_key]
        self._names = [column.name for column in table.columns if column.name not in _OWN]
        self._values = attrgetter(*self._names)
        statement = insert(table)
        new = statement.excluded
        values = {column.name: new[column.name] for column in table.columns if not column.primary_key}
        if "gone_at" in values:
            values["gone_at"] = case((table.c.gone_at > new.collected_at, table.c.gone_at), else_=None)
        self.statement: Executable = statement.on_conflict_do_update(
            index_elements=self._key,
            set_=values,
            where=or_(
                new.collected_at > table.c.collected_at,
                and_(new.collected_at == table.c.collected_at, new.collected_seq > table.c.collected_seq),
            ),
        )

    def row(self, one: Collected) -> Row:
        """Raises `TypeError` for an `extra` that is nested too deeply."""
        row: Row = dict(zip(self._names, self._values(one.item), strict=True))
        row["extra"] = orjson.dumps(getattr(one.item, "extra", None) or {}).decode()
        row["collected_at"], row["collected_seq"] = one.at, one.seq
        return row

    def chosen(self, rows: Iterable[tuple[Collected, Row]]) -> list[Row]:
        """The newest row of each key."""
        best: dict[tuple[str, ...], tuple[Collected, Row]] = {}
        key = attrgetter(*self._key)
        for one, row in rows:
            known = best.get(at := key(one.item))
            if known is None or one.age > known[0].age:
                best[at] = (one, row)
        return [best[at][1] for at in sorted(best)]


class Mark:
    """Marks posts as gone: since the first time it was found after the post was last collected.

    A post that was never collected is not known here, and nothing is marked.
    """

    def __init__(self) -> None:
        at, seq = bindparam("at", type_=Text()), bindparam("seq", type_=BigInteger())
        self.statement: Executable = (
            posts.update()
            .where(
                posts.c.source == bindparam("of_source"),
                posts.c.post_id == bindparam("of_post"),
                or_(posts.c.collected_at < at, and_(posts.c.collected_at == at, posts.c.collected_seq < seq)),
                or_(posts.c.gone_at.is_(None), posts.c.gone_at > at),
            )
            .values(gone_at=at)
        )

    def row(self, one: Collected) -> Row:
        return {"of_source": one.item.source, "of_post": one.item.post_id, "at": one.at, "seq": one.seq}

    def chosen(self, rows: Iterable[tuple[Collected, Row]]) -> list[Row]:
        """All of them: a post may have been collected in between."""
        by_key = sorted(rows, key=lambda pair: (pair[1]["of_source"], pair[1]["of_post"], pair[0].age))
        return [row for _, row in by_key]
