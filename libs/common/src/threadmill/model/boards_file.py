"""The boards file: which boards are scanned, and how often.

    [defaults]
    every = "10m"
    full_every = "1d"

    [[board]]
    ids = ["1", "2", "3"]

    [[board]]
    id = "news"
    adaptive = { min = "1m", max = "6h" }
    priority = 10
    params = { slug = "latest-news" }

An entry's `every`, `cron` or `adaptive` takes the place of the defaults', `params` are added to theirs. `source` may be
left out where there is one source.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field as Key
from pydantic import StrictInt, StrictStr, ValidationError

from threadmill.model.board import Board
from threadmill.model.duration import seconds_of
from threadmill.model.errors import ConfigError, SourceError, TaskError
from threadmill.model.interval import Interval, read_interval
from threadmill.model.source import Source
from threadmill.model.source.table import Table
from threadmill.model.stages import LIST

Id = StrictStr | StrictInt


class Bounds(Table):
    """`adaptive`: the shortest and the longest interval."""

    min: str
    max: str


class Plan(Table):
    """What an entry may say of its boards, and `[defaults]` of all."""

    source: str | None = None
    every: str | None = None
    cron: str | None = None
    timezone: str | None = None
    adaptive: Bounds | None = None
    full_every: str | None = None
    priority: StrictInt | None = None
    params: dict[str, str] = Key(default={})
    enabled: bool = True

    @property
    def says_how_often(self) -> bool:
        return any(each is not None for each in (self.every, self.cron, self.adaptive))

    def interval(self, timezone: str | None) -> Interval:
        """How often, in that time zone; `ValueError` with a sentence."""
        bounds = (self.adaptive.min, self.adaptive.max) if self.adaptive else None
        return read_interval(every=self.every, cron=self.cron, timezone=timezone, adaptive=bounds)


class Entry(Plan):
    """One `[[board]]`: a board, or several that are alike."""

    id: Id | None = None
    ids: tuple[Id, ...] = ()

    @property
    def names(self) -> list[str]:
        return [str(each) for each in ([self.id] if self.id is not None else []) + list(self.ids)]


class File(Table):
    """The whole file."""

    defaults: Plan = Plan()
    board: tuple[Entry, ...] = ()


def read_boards(file: Path, sources: Mapping[str, Source]) -> list[Board]:
    """The boards of the file; `ConfigError` names the file, the entry and what to do."""
    try:
        body = File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"the boards file {file} cannot be read ({error.strerror}); check its path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the boards file {file} is not TOML: {error}") from None
    except ValidationError as error:
        raise ConfigError(_sentence(file, error)) from None
    seen: dict[tuple[str, str], int] = {}
    boards = []
    for number, entry in enumerate(body.board, 1):
        try:
            for board in _boards(entry, body.defaults, sources):
                name = (board.source, board.id)
                if name in seen:
                    raise ValueError(f"board {board.id} of {board.source} stands in entry {seen[name]} already")
                seen[name] = number
                boards.append(board)
        except (ValueError, TaskError, SourceError, ConfigError) as error:
            raise ConfigError(f"{file}: entry {number} ({', '.join(entry.names[:3]) or 'no id'}): {error}") from None
    return boards


def _boards(entry: Entry, defaults: Plan, sources: Mapping[str, Source]) -> Iterator[Board]:
    """The boards of one entry; raises what is wrong with it."""
    if not entry.names:
        raise ValueError("it names no board: give id or ids")
    source = _source(entry.source or defaults.source, sources)
    interval = _interval(entry, defaults)
    full_every = entry.full_every or defaults.full_every
    params = {**defaults.params, **entry.params}
    rules = source.rules(LIST.name)
    for name in entry.names:
        rules.check(name, params)
        yield Board(
            source.name,
            name,
            interval,
            params=params,
            priority=entry.priority if entry.priority is not None else defaults.priority or 0,
            full_every_s=seconds_of(full_every) if full_every else 0,
            enabled=entry.enabled and defaults.enabled,
        )


def _interval(entry: Entry, defaults: Plan) -> Interval:
    plan = entry if entry.says_how_often else defaults
    if not plan.says_how_often:
        raise ValueError("say how often: every, cron or adaptive, here or in [defaults]")
    return plan.interval(entry.timezone or defaults.timezone if plan.cron else entry.timezone)


def _source(name: str | None, sources: Mapping[str, Source]) -> Source:
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    if name is None:
        raise ValueError(f"say which source: {', '.join(sources)}")
    if name not in sources:
        raise ValueError(f"source {name!r} is not configured (THREADMILL_SOURCES has {', '.join(sources)})")
    return sources[name]


def _sentence(file: Path, error: ValidationError) -> str:
    """The first mistake as a sentence, and how many more there are."""
    first, *others = error.errors(include_url=False)
    table, *place = first["loc"]
    if table == "board" and place:
        at = f"entry {int(place[0]) + 1}" + "".join(f", {each}" for each in place[1:2])
    else:
        at = ".".join(str(each) for each in first["loc"])
    message = (
        "there is no such key; correct its name or remove it" if first["type"] == "extra_forbidden" else first["msg"]
    )
    return f"{file}: {at}: {message}" + (f" (and {len(others)} more)" if others else "")
