"""Every command of `threadmill`: how to say it, and what it is to answer when there is nothing in Redis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typer.core import TyperGroup
from typer.main import get_command

from threadmill.ops.app import app


@dataclass(frozen=True)
class Row:
    """A command with arguments, as an operator would say it; FILE stands for a file that it can read."""

    line: str
    empty: int = 0
    """Exit status with nothing in Redis."""
    words: str = ""
    """What it then says, on either output."""
    asks: bool = True
    """Whether it asks Redis."""
    down: int = 3
    """Exit status with a Redis that cannot be used."""

    def arguments(self, file: str = "") -> list[str]:
        return [file if word == "FILE" else word for word in self.line.split()]


ROWS = [
    Row("status", words="items waiting to be stored"),
    Row("submit list 1", words="1 submitted to list"),
    Row("requeue detail 1", words="1 submitted to detail"),
    Row("jobs", words="nothing was submitted yet"),
    Row("job nobody", empty=2, words="there is no job nobody"),
    Row("events", words="nothing was finished yet"),
    Row("pause comment", words="comment is paused"),
    Row("resume comment", words="comment goes on"),
    Row("drain comment", words="comment drains"),
    Row("rate bbs", words="what its source file says"),
    Row("concurrency detail", words="THREADMILL_CONCURRENCY"),
    Row("priority nobody 1", empty=2, words="there is no job nobody"),
    Row("scale detail=2", words="2 replicas wanted"),
    Row("trace 4711", empty=1, words="never seen"),
    Row("peek detail", words="nothing waits in detail"),
    Row("workers", words="nobody works"),
    Row("health list_scanner", empty=1, words="no live replica"),
    Row("boards list", words="there are no boards"),
    Row("boards add 7 --every 10m", words="added or changed"),
    Row("boards remove 7", empty=2, words="7"),
    Row("boards pause 7", empty=2, words="7"),
    Row("boards resume 7", empty=2, words="7"),
    Row("boards scan 7", empty=2, words="7"),
    Row("boards check /dev/null", asks=False),
    Row("dead list detail", words="nothing is parked"),
    Row("dead show detail --id bbs.0:1", empty=2, words="there is no letter bbs.0:1"),
    Row("dead replay detail", words="0 dead letters of detail replayed"),
    Row("dead drop detail --yes", words="0 dead letters of detail dropped"),
    Row("export detail", words="0 tasks and pages of detail exported"),
    Row("import detail FILE", words="0 tasks and pages imported"),
    Row("purge detail --yes", words="purged from detail: nothing"),
    Row("doctor", empty=1, words="a restart of Redis loses all work", down=1),
    Row("version", asks=False),
    Row("up --once --forum 1", empty=-1),  # collects: no answer to wait for here
]


def names() -> Iterator[str]:
    """Every command there is, as it is said: `dead list`."""
    yield from _names(get_command(app), "")


def _names(group: object, before: str) -> Iterator[str]:
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _names(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def asking() -> list[Row]:
    return [row for row in ROWS if row.asks]
