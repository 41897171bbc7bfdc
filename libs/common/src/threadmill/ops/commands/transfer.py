"""`threadmill export` and `threadmill import`: waiting work as a file, out of a stage and into one."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console

from threadmill.model.errors import ConfigError
from threadmill.ops import transfer
from threadmill.ops.commands.common import (
    Json,
    RemovableQueue,
    SourceName,
    StageName,
    Yes,
    confirm,
    connected,
    err,
    out,
    print_json,
    progress,
)
from threadmill.ops.deployment import stage_argument
from threadmill.ops.pieces import REMOVABLE, held_in, places_named

app = typer.Typer()


@app.command(name="export", epilog="Example: threadmill export detail > detail.jsonl")
def export_command(
    stage: StageName,
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="A new file; - for standard output.")] = Path("-"),
    queue: RemovableQueue = "waiting",
    source: SourceName = None,
    take: Annotated[bool, typer.Option("--take", help="Take out of the stage what was written.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Write waiting work down, a line for each task or page. Leased pages stay with their workers."""
    one, places = stage_argument(stage), places_named(queue, REMOVABLE)
    deployment = connected()
    total = held_in(deployment, one, places, source)
    if take:
        if str(file) == "-" and sys.stdout.isatty():
            raise ConfigError("--take to a terminal would lose the work: name a file, or redirect into one")
        confirm(f"Take {total:,} tasks and pages out of {one.name}?", yes=yes)
    with _writable(file) as target, progress(quiet=as_json or total < 1000) as bar:
        task = bar.add_task("exporting", total=total)
        done = transfer.export(
            deployment, one, places, target, source=source, take=take, told=lambda n: bar.advance(task, n)
        )
    written = sum(done.written.values())
    told = err if str(file) == "-" else out
    if as_json:
        counts = {"written": dict(done.written), "taken": done.taken, "gone": done.gone, "unreadable": done.unreadable}
        print_json(counts) if told is out else err.print_json(data=counts, indent=None)
        return
    _say(told, f"{written:,} tasks and pages of {one.name} exported{', and taken out of it' if take else ''}")
    if done.gone:
        _say(
            told,
            f"{done.gone:,} of them were leased meanwhile, and stay with their workers, though they are in the file",
        )
    if done.unreadable:
        _say(told, f"{done.unreadable:,} entries are no work that could be read; they were left where they are")


@app.command(name="import", epilog="Example: threadmill import detail detail.jsonl")
def import_command(
    stage: StageName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote; - for standard input.")],
    again: Annotated[bool, typer.Option("--again", help="Also what was imported already in the last day.")] = False,
    as_json: Json = False,
) -> None:
    """Put exported work back, here or in another deployment. One bad line, and nothing is imported."""
    one = stage_argument(stage)
    deployment = connected()
    with _readable(file) as content:
        size = content.seek(0, 2)
        with progress(quiet=as_json or size < 100_000) as bar:
            content.seek(0)
            task = bar.add_task("checking", total=size)
            jobs = transfer.check(deployment, one, content, lambda n: bar.advance(task, n))
            content.seek(0)
            task = bar.add_task("importing", total=size)
            salt = secrets.token_hex(8) if again else ""
            done = transfer.import_(deployment, one, content, jobs, again=salt, told=lambda n: bar.advance(task, n))
    if as_json:
        print_json({"imported": dict(done.restored), "imported_before": done.before})
        return
    _say(out, f"{sum(done.restored.values()):,} tasks and pages imported into {one.name}")
    if done.before:
        _say(
            out,
            f"{done.before:,} were imported already in the last day and left alone (--again imports them once more)",
        )


@contextmanager
def _writable(file: Path) -> Iterator[IO[bytes]]:
    if str(file) == "-":
        yield sys.stdout.buffer
        return
    try:
        target = file.open("xb")
    except FileExistsError:
        raise ConfigError(f"{file} is there already, and may hold work: name a new file") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    with target:
        yield target


@contextmanager
def _readable(file: Path) -> Iterator[IO[bytes]]:
    """The file, or a copy of standard input: it is read twice, first to check it."""
    if str(file) != "-":
        try:
            content = file.open("rb")
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
        with content:
            yield content
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        yield copy


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
