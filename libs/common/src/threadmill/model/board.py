"""A board that is scanned again and again: how often, how, and what came of it last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from zlib import crc32

import orjson

from threadmill.model.duration import duration_text, seconds_of
from threadmill.model.interval import Every, Interval, read_interval
from threadmill.model.stages import LIST
from threadmill.model.task import EXPRESS_PRIORITY, Task


@dataclass(frozen=True, slots=True)
class LastScan:
    """What came of a board's last scan. Times are ms since 1970 on Redis's clock, 0 for never."""

    job: str = ""
    number: int = 0
    """The how-manieth it was."""
    at_ms: int = 0
    """When it was dispatched."""
    late_ms: int = 0
    """How long after it was due."""
    full: bool = False
    """Whether it was a whole scan, which does not stop at known posts."""
    open: bool = False
    """Nobody has seen yet what it brought."""
    brought: int | None = None
    """Posts that it handed down, new or moved; while it is `open`, those of the scan before. None if nobody knows."""
    dead: bool = False
    """Pages of it (while it is `open`: of the scan before) were parked as dead letters."""
    full_at_ms: int = 0
    """When the last whole scan was dispatched."""
    full_next: bool = False
    """Somebody asked for the next one to be whole."""
    pace_s: int = 0
    """An adaptive board's present interval; 0 before its second scan."""


@dataclass(frozen=True, slots=True)
class Board:
    """A board of a source, and its place in the schedule.

    As JSON (the entry of the hash `boards`, docs/redis-keys.md) it is what a boards file says, without what is default,
    and `last`. Source and id are not in it: they are the key and the field that it stands under.
    """

    source: str
    id: str
    interval: Interval
    params: Mapping[str, str] = field(default_factory=dict)
    """What the source's URLs need besides the id."""
    priority: int = 0
    """Of the boards that are due, those of larger priority are dispatched first; their tasks carry it."""
    full_every_s: int = 0
    """A whole scan so often, because new comments on old posts are seen by no other; 0: never."""
    enabled: bool = True
    live: bool = False
    """Added by an operator: it stays, whatever the boards file says."""
    paused: bool = False
    """An operator wants it left alone, whatever the boards file says."""
    last: LastScan = LastScan()

    def __post_init__(self) -> None:
        if abs(self.priority) >= EXPRESS_PRIORITY:
            raise ValueError(f"a priority lies between ±{EXPRESS_PRIORITY - 1}")

    @property
    def active(self) -> bool:
        """Whether it is on the schedule."""
        return self.enabled and not self.paused

    @property
    def phase(self) -> float:
        """Its own place (0 to 1) within any interval, the same in every process and release."""
        return crc32(f"{self.source}/{self.id}".encode()) / 2**32

    def carrying_on(self, known: Board) -> Board:
        """The board with what the one that was known has been through."""
        return replace(self, last=known.last, paused=known.paused)

    def due_next(self) -> int:
        """When it is due after its last scan (ms); 0 if it never had one."""
        last = self.last
        return self.interval.due_after(last.at_ms, phase=self.phase, pace_s=last.pace_s) if last.at_ms else 0

    def dispatched(self, job: str, *, at_ms: int, due_ms: int) -> Board:
        """The board with a new scan under way."""
        last = self.last
        full = last.full_next or self._full_due(at_ms)
        return replace(
            self,
            last=LastScan(
                job=job,
                number=last.number + 1,
                at_ms=at_ms,
                late_ms=max(0, at_ms - due_ms),
                full=full,
                open=True,
                brought=last.brought,
                dead=last.dead,
                full_at_ms=at_ms if full else last.full_at_ms,
                pace_s=last.pace_s,
            ),
        )

    def looked_at(self, brought: int | None, *, dead: bool) -> Board:
        """The board once its scan is over. What failed, or is not known, or was the first, changes no pace."""
        last = replace(self.last, open=False, brought=brought, dead=dead)
        if brought is not None and not dead and last.number > 1:
            last = replace(last, pace_s=self.interval.pace_after(last.pace_s, brought))
        return replace(self, last=last)

    def task(self) -> Task:
        """The task of the scan that `dispatched` noted."""
        last = self.last
        return Task(LIST.name, self.source, self.id, self.params, priority=self.priority, job=last.job, full=last.full)

    def _full_due(self, at_ms: int) -> bool:
        if not self.full_every_s:
            return False
        every, full_at_ms = Every(self.full_every_s), self.last.full_at_ms
        return not full_at_ms or every.due_after(full_at_ms, phase=self.phase, pace_s=0) <= at_ms

    def to_json(self) -> bytes:
        """Always the same bytes for the same board: scripts compare them."""
        body: dict[str, Any] = self.interval.spelled()
        if self.params:
            body["params"] = dict(sorted(self.params.items()))
        if self.full_every_s:
            body["full_every"] = duration_text(self.full_every_s)
        for name, default in _FLAGS.items():
            if (value := getattr(self, name)) != default:
                body[name] = value
        if last := {name: value for name in _LAST if (value := getattr(self.last, name)) != _LAST[name]}:
            body["last"] = last
        return orjson.dumps(body)

    @classmethod
    def from_json(cls, data: bytes, *, source: str, id: str) -> Board:  # noqa: A002 - as the field is called
        """Read what `to_json` wrote, or somebody by hand; `ValueError` with a sentence if it is no board."""
        try:
            body = orjson.loads(data)
            last = LastScan(**_checked(body.pop("last", {}), _LAST))
            plan = _checked({name: body.pop(name) for name in _FLAGS if name in body}, _FLAGS)
            params, full_every = body.pop("params", {}), body.pop("full_every", None)
            if "adaptive" in body:
                bounds = body.pop("adaptive")
                body["adaptive"] = (bounds["min"], bounds["max"])
            return cls(
                source,
                id,
                read_interval(**body),
                params={str(name): str(value) for name, value in params.items()},
                full_every_s=seconds_of(full_every) if full_every else 0,
                last=last,
                **plan,
            )
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"what Redis has of board {id} of {source} cannot be read: {error}") from None


_FLAGS: dict[str, Any] = {"priority": 0, "enabled": True, "live": False, "paused": False}
_LAST: dict[str, Any] = {each.name: each.default for each in fields(LastScan)}


def _checked(body: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The body itself, if it has known names only, each of its type."""
    for name, value in body.items():
        if name not in known:
            raise ValueError(f"{name} is unknown")
        wanted = int if known[name] is None else type(known[name])
        if type(value) is not wanted:
            raise ValueError(f"{name} must be {wanted.__name__}")
    return body
