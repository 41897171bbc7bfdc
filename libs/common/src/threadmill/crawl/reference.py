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
    stale: int = 0
    """Pages in a row, up to the one before this, that brought nothing new."""

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
        )

    def following(self, number: int, params: Mapping[str, str], *, stale: int = 0) -> PageReference:
        """A further page of the same key; `params` are what this page taught."""
        return replace(self, number=number, params=params, stale=stale)

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
    "stale": "s",
}
_LONG = {short: name for name, short in _SHORT.items()}
_DEFAULTS: dict[str, Any] = {
    f.name: f.default if f.name != "params" else {} for f in fields(PageReference) if f.name in _SHORT
}
