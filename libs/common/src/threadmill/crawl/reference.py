"""A page's reference: which page of which key, and what the task said. A queued request is nothing more than that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import orjson

from threadmill.model.task import Task


@dataclass(frozen=True, slots=True)
class PageReference:
    """Page `number` of what a task's key names. The URL is built from it by the source's templates."""

    source: str
    key: str
    number: int = 1
    params: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    depth: int = 0
    trace: str = ""
    known: str = ""
    """The version known before, if this is a post collected again."""
    force: bool = False
    cascade: bool = False
    full: bool = False
    """It belongs to a scan of the whole board."""
    stale: int = 0
    """Posts in a row, on the pages just before this one, that were known."""
    expected: int = 0
    """Rows its key must have in the end, if its run began behind the first page; else 0."""

    @classmethod
    def of(cls, task: Task, number: int) -> PageReference:
        return cls(
            source=task.source,
            key=task.key,
            number=number,
            params=task.params,
            priority=task.priority,
            depth=task.depth,
            trace=task.trace,
            known=task.known,
            force=task.force,
            cascade=task.cascade,
            full=task.full,
        )

    def following(self, number: int, params: Mapping[str, str], *, stale: int = 0) -> PageReference:
        """A further page of the same key; `params` are what this page taught."""
        return replace(self, number=number, params=params, stale=stale)

    def resumed(self, number: int, expected: int) -> PageReference:
        """The page at which a run begins that shall find `expected` rows; with 0 it takes whatever it finds."""
        return replace(self, number=number, expected=expected)

    def dump(self) -> bytes:
        """As JSON: what differs from the defaults, under one-letter names."""
        body = {_SHORT[name]: value for name, default in _DEFAULTS.items() if (value := getattr(self, name)) != default}
        return orjson.dumps({"k": self.key, **body})

    @classmethod
    def load(cls, data: bytes, source: str) -> PageReference:
        """Raises `ValueError`, `KeyError` or `TypeError` when the bytes are not a reference."""
        body: dict[str, Any] = orjson.loads(data)
        return cls(source, body.pop("k"), **{_LONG[short]: value for short, value in body.items()})


_SHORT = {
    "number": "n",
    "params": "a",
    "priority": "p",
    "depth": "d",
    "trace": "t",
    "known": "o",
    "force": "f",
    "cascade": "c",
    "full": "w",
    "stale": "s",
    "expected": "e",
}
_LONG = {short: name for name, short in _SHORT.items()}
_DEFAULTS: dict[str, Any] = {
    f.name: f.default if f.name != "params" else {} for f in fields(PageReference) if f.name in _SHORT
}
