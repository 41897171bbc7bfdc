"""What a store must do, and which store a URL means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from item_writer.batch import Collected
from threadmill.model.errors import ConfigError, ThreadmillError


class DatabaseUnavailable(ThreadmillError):  # noqa: N818 - reads as the state it is
    """The store cannot take anything now: it is locked, full, gone. It may later; nothing was written."""


class Refused(NamedTuple):
    """An item that the store will never take as it is."""

    collected: Collected
    error: str


class Store(Protocol):
    """Keeps the newest of each post and comment. Not for use by several threads."""

    group: str
    """The consumer group that reads for this store."""

    def open(self) -> None:
        """Make the store ready, creating what is missing; raises `DatabaseUnavailable`, or `ConfigError` for good."""

    def write(self, items: Sequence[Collected]) -> list[Refused]:
        """Keep these items, for good when it returns; answers those it refused, which held up none of the others.

        An item replaces what the store has only if it is newer (`Collected.age`), so that writing it again, or late,
        changes nothing. Raises `DatabaseUnavailable` when nothing was written.
        """

    def close(self) -> None:
        """Let go of connections and files."""


def store_for(url: str) -> Store:
    """The store that THREADMILL_STORE_URL means; raises `ConfigError`."""
    # Imported here, so that a store brings its libraries only where it is used.
    from item_writer.sql_store import DIALECTS, SqlStore  # noqa: PLC0415

    kind = url.partition(":")[0].partition("+")[0]
    if kind in DIALECTS:
        return SqlStore(url)
    known = ", ".join(f"{name}://" for name in DIALECTS)
    raise ConfigError(f"THREADMILL_STORE_URL must begin with one of {known}, e.g. sqlite:///data/threadmill.db")
