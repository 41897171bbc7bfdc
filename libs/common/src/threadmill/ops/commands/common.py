"""What the commands share: where they print, the options that mean the same everywhere, and a connection."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.progress import Progress

from threadmill.model.config import Config
from threadmill.model.errors import ConfigError, TaskError, ThreadmillError
from threadmill.model.source import StageRules, configured_sources
from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment
from threadmill.ops.pieces import REMOVABLE

UNBROKEN = 10_000
"""Width of what is no terminal: a pipe's reader wants a row on a line, and ids whole."""


def _console(stream: TextIO, *, stderr: bool = False) -> Console:
    return Console(stderr=stderr, emoji=False, width=None if stream.isatty() or "COLUMNS" in os.environ else UNBROKEN)


out = _console(sys.stdout)
err = _console(sys.stderr, stderr=True)


def complete_stages(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in STAGES if name.startswith(incomplete)]


def complete_sources(incomplete: str) -> list[str]:
    """For the shell's completion: what THREADMILL_SOURCES has; nothing if that cannot be read."""
    try:
        sources = configured_sources(Config.from_environment())
    except ThreadmillError:
        return []
    return [source.name for source in sources if source.name.startswith(incomplete)]


def complete_queues(names: Iterable[str]) -> Callable[[str], list[str]]:
    """For the shell's completion of `--queue`."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SourceName = Annotated[
    str | None,
    typer.Option("--source", autocompletion=complete_sources, help="Which source, if several are configured."),
]
StageName = Annotated[
    str, typer.Argument(metavar="STAGE", autocompletion=complete_stages, help="list, detail or comment.")
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Forum ids for list, post ids for the others.")]
IdFile = Annotated[Path | None, typer.Option("--file", help="Read ids from a file, one a line; - for standard input.")]
Params = Annotated[list[str] | None, typer.Option("--param", help="NAME=VALUE for the source's URL templates.")]
RemovableQueue = Annotated[
    str,
    typer.Option(
        "--queue",
        autocompletion=complete_queues(REMOVABLE),
        help="tasks, requests, delayed, dead, waiting (all but dead) or all.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def connected() -> Deployment:
    """The deployment that the environment describes; its Redis answers, or a `StoreError` says why not."""
    return Deployment.connected(Config.from_environment())


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)  # noqa: T201


def progress(*, quiet: bool) -> Progress:
    """A bar on standard error, if that is a terminal; gone when it is full."""
    return Progress(console=err, transient=True, disable=quiet or not err.is_terminal)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before work is thrown away; where nobody can answer, `--yes` must have been said."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} Nobody is there to answer: say --yes")
    typer.confirm(question, abort=True, err=True)


def read_params(pairs: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE pairs as a mapping."""
    split = [pair.partition("=") for pair in pairs or ()]
    if any(not separator for _, separator, _ in split):
        raise ConfigError("--param wants NAME=VALUE")
    return {name: value for name, _, value in split}


@dataclass(frozen=True, slots=True)
class Given:
    """The ids that were given, each once, with where it stands in a file (empty: it was an argument)."""

    places: dict[str, str]
    doubles: int
    """How many were there already."""


def read_ids(ids: Sequence[str] | None, file: Path | None) -> Given:
    """The ids that were given as arguments, and in a file, one a line; blank lines do not count."""
    found = [(key, "") for key in ids or ()]
    if file is not None:
        name = "standard input" if str(file) == "-" else str(file)
        lines = _text_of(file, name).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        found += [(key, f"line {number} of {name}") for number, line in enumerate(lines, 1) if (key := line.strip())]
    if not found:
        raise ConfigError("no ids: give them as arguments, or in a file with --file")
    places: dict[str, str] = {}
    for key, place in found:
        places.setdefault(key, place)
    return Given(places, len(found) - len(places))


def check_ids(rules: StageRules, given: Given, params: dict[str, str]) -> None:
    """Before anything is done with them; a bad id is named by its line."""
    for key, place in given.places.items():
        try:
            rules.check(key, params)
        except TaskError as error:
            raise TaskError(error.reason, f"{place}: {error}. Nothing was done" if place else str(error)) from None


def _text_of(file: Path, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is no UTF-8 text: byte {error.start} is not") from None
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
