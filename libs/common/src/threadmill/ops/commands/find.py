"""`threadmill trace`, `peek` and `workers`: where a post is, what waits, and who works on it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.ops import pieces
from threadmill.ops.commands.common import (
    Json,
    SourceName,
    StageName,
    complete_queues,
    complete_stages,
    connected,
    out,
    print_json,
    progress,
)
from threadmill.ops.deployment import stage_argument
from threadmill.ops.peek import QUEUES, peek
from threadmill.ops.tale import sentences, span, title
from threadmill.ops.trace import NEVER_SEEN, Whereabouts, extent, trace
from threadmill.ops.workers import Worker, crew
from threadmill.store.clock import clock_ms
from threadmill.store.pieces import Piece, Place

LONG = 50_000
"""From so many pieces on, looking through them takes a while."""

app = typer.Typer()


@app.command(name="trace", epilog="Example: threadmill trace 4711")
def trace_command(
    key: Annotated[str, typer.Argument(metavar="ID", help="A post's id, or a forum's.")],
    stage: Annotated[
        str | None, typer.Option("--stage", autocompletion=complete_stages, help="Look in this stage only.")
    ] = None,
    source: SourceName = None,
    as_json: Json = False,
) -> None:
    """Where a post is, in every stage: waiting, leased, delayed, dead, done. Exit status 1: nobody knows it."""
    one = stage_argument(stage) if stage else None
    deployment = connected()
    total = extent(deployment, stage=one, source=source)
    with progress(quiet=as_json or total < LONG) as bar:
        task = bar.add_task("looking", total=total)
        found = trace(deployment, key, stage=one, source=source, told=lambda n: bar.advance(task, n))
    known = any(where.seen for where in found)
    if as_json:
        print_json({"id": key, "found": known, "stages": [where.as_json() for where in found]})
    else:
        now = clock_ms(deployment.client)
        for where in found:
            _tell(key, where, now, several=len(deployment.sources) > 1)
    raise typer.Exit(0 if known else 1)


def _tell(key: str, where: Whereabouts, now: int, *, several: bool) -> None:
    colours = {"dead": "red", "delayed": "yellow", NEVER_SEEN: "dim", "done": "green"}
    source = f"{where.lane.source}  " if several else ""
    head = f"{source}{where.stage.name:8} [bold]{escape(title(key, where))}[/]"
    out.print(f"{head}  [{colours.get(where.state, 'cyan')}]{where.state}[/]", highlight=False, soft_wrap=True)
    if where.seen:
        for line in sentences(where, now):
            out.print(f"         {escape(line)}", highlight=False, soft_wrap=True)


@app.command(name="peek", epilog="Example: threadmill peek detail --queue delayed")
def peek_command(
    stage: StageName,
    limit: Annotated[int, typer.Option("--limit", help="At most so many of each queue.")] = 10,
    queue: Annotated[
        str,
        typer.Option(
            "--queue", autocompletion=complete_queues(QUEUES), help="tasks, requests, delayed, leased or all."
        ),
    ] = "all",
    source: SourceName = None,
    as_json: Json = False,
) -> None:
    """What waits in a stage, in the order in which it would come, without taking it."""
    if limit < 1:
        raise ConfigError("--limit wants a number above zero")
    one, places = stage_argument(stage), pieces.places_named(queue, QUEUES)
    deployment = connected()
    table = _table("queue", "id", "page", "job", "when", "before it", "worker")
    now, shown = clock_ms(deployment.client), 0
    for place in places:
        for lane, piece in peek(deployment, one, place, limit=limit, source=source):
            shown += 1
            if as_json:
                print_json(pieces.as_json(piece, lane))
            else:
                table.add_row(*_row(lane, piece, now))
    if not as_json:
        out.print(table if shown else f"nothing waits in {one.name}")
        held = {place: pieces.held_in(deployment, one, [place], source) for place in places}
        out.print(", ".join(f"{number:,} {place}" for place, number in held.items() if number), style="bold")


def _row(lane: Lane, piece: Piece, now: int) -> tuple[str, ...]:
    when = {
        Place.LEASED: f"ends in {span(piece.at_ms - now)}" if piece.at_ms > now else "lease is over",
        Place.DELAYED: f"due in {span(piece.at_ms - now)}" if piece.at_ms > now else "due",
    }.get(piece.place, f"came {span(now - piece.at_ms)} ago" if piece.at_ms else "")
    return (
        str(piece.place),
        escape(piece.key) if piece.key else "[red]cannot be read[/]",
        "" if piece.page is None else str(piece.page),
        escape(piece.job),
        when,
        "" if piece.before is None else f"{piece.before:,}",
        escape(piece.holder),
    )


@app.command(name="workers", epilog="Example: threadmill workers --json")
def workers_command(as_json: Json = False) -> None:
    """Who works, since when, and what each holds. Silent ones are marked: their work will be taken over."""
    deployment = connected()
    found = crew(deployment)
    if as_json:
        print_json({"workers": [worker.as_json() for worker in found]})
        return
    table = _table("service", "id", "since", "last seen", "leases", "first ends", "entries")
    now = clock_ms(deployment.client)
    for worker in found:
        table.add_row(*_worker_row(worker, now), style="red" if worker.silent else None)
    out.print(table if found else "nobody works")


def _worker_row(worker: Worker, now: int) -> tuple[str, ...]:
    seen = f"{span(now - worker.seen_ms)} ago" if worker.seen_ms else "never"
    ends = f"in {span(worker.ends_ms - now)}" if worker.ends_ms > now else "is over" if worker.ends_ms else ""
    return (
        worker.service,
        escape(worker.id),
        f"{span(now - worker.since_ms)} ago" if worker.since_ms else "",
        f"{seen}, silent" if worker.silent else seen,
        f"{worker.leases:,}",
        ends,
        f"{worker.entries:,}",
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
