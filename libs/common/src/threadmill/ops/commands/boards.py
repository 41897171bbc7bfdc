"""`threadmill boards`: which boards are scanned again and again, and how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from threadmill.model.board import Board
from threadmill.model.boards_file import read_boards
from threadmill.model.config import Config
from threadmill.model.duration import duration_text, seconds_of
from threadmill.model.errors import ConfigError
from threadmill.model.interval import Interval, read_interval
from threadmill.model.source import configured_sources
from threadmill.model.stages import LIST
from threadmill.ops import board_list, boards
from threadmill.ops.commands.common import (
    IdFile,
    Json,
    Params,
    SourceName,
    check_ids,
    connected,
    err,
    out,
    print_json,
    progress,
    read_ids,
    read_params,
)
from threadmill.ops.deployment import Deployment
from threadmill.store.schedule import alive

app = typer.Typer(
    no_args_is_help=True,
    help="Boards that are scanned again and again: when each is due, how late it is, what its last scan brought.",
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Forum ids.")]
Every = Annotated[str | None, typer.Option(help="At even intervals: 90s, 10m, 1h30m, 1d.")]
Cron = Annotated[str | None, typer.Option(help="By a cron expression of five fields.")]
Timezone = Annotated[str | None, typer.Option(help="The cron expression's time zone, e.g. Asia/Seoul; default: UTC.")]
Adaptive = Annotated[str | None, typer.Option(metavar="MIN..MAX", help="The more a scan brings, the sooner the next.")]


@app.command(name="list", epilog="Example: threadmill boards list --late --limit 20")
def list_command(
    source: SourceName = None,
    late: Annotated[bool, typer.Option("--late", help="Only those that are due.")] = False,
    limit: Annotated[int, typer.Option(help="At most so many; 0: all.")] = 0,
    as_json: Json = False,
) -> None:
    """All boards, those first that are due first."""
    deployment = connected()
    found = board_list.rows(deployment, deployment.source(source).name if source else None)
    shown = [row for row in found if row.is_due or not late]
    shown = shown[:limit] if limit else shown
    if as_json:
        print_json([board_list.as_json(row) for row in shown])
        return
    out.print(_table(shown) if shown else "no board is due" if late else "there are no boards; see boards add --help")
    states = Counter(_state(row) for row in found)
    out.print(", ".join(f"{number:,} {state}" for state, number in states.items()), style="bold")
    _warn_if_alone(deployment)


@app.command(name="add", epilog="Example: threadmill boards add 7 8 --every 10m --full-every 1d")
def add_command(
    ids: Ids = None,
    file: IdFile = None,
    every: Every = None,
    cron: Cron = None,
    timezone: Timezone = None,
    adaptive: Adaptive = None,
    full_every: Annotated[str | None, typer.Option(help="A whole scan so often, known posts or not.")] = None,
    priority: Annotated[int, typer.Option(help="Of boards that are due, larger comes first.")] = 0,
    param: Params = None,
    source: SourceName = None,
    as_json: Json = False,
) -> None:
    """Scan boards again and again from now on; those there are already are changed. They outlive the boards file."""
    given, params = read_ids(ids, file), read_params(param)
    try:
        interval, whole_s = _interval(every, cron, timezone, adaptive), seconds_of(full_every) if full_every else 0
        plan = Board("", "", interval, params=params, priority=priority, full_every_s=whole_s, live=True)
    except ValueError as error:
        raise ConfigError(f"{error}; e.g. --every 10m, --cron '*/15 * * * *' or --adaptive 1m..6h") from None
    deployment = connected()
    site = deployment.source(source)
    check_ids(site.rules(LIST.name), given, params)
    wanted = [replace(plan, source=site.name, id=name) for name in given.places]
    with progress(quiet=as_json or len(wanted) < 1000) as bar:
        task = bar.add_task("adding", total=len(wanted))
        changed = boards.put(deployment, wanted, lambda n: bar.advance(task, n))
    _tell(as_json, "added", changed, f"of {len(wanted)} boards of {site.name} added or changed; scanned {interval}")
    if not as_json:
        _warn_if_alone(deployment)


@app.command(name="remove", epilog="Example: threadmill boards remove 7 8")
def remove_command(ids: Ids = None, file: IdFile = None, source: SourceName = None, as_json: Json = False) -> None:
    """Scan boards no more. What was collected of them stays. Boards of the boards file come back with it."""
    names, deployment = list(read_ids(ids, file).places), connected()
    _tell(as_json, "removed", boards.remove(deployment, deployment.source(source), names), "boards removed")


@app.command(name="pause", epilog="Example: threadmill boards pause 7")
def pause_command(ids: Ids = None, file: IdFile = None, source: SourceName = None, as_json: Json = False) -> None:
    """Leave boards alone until they are resumed, whatever the boards file says."""
    names, deployment = list(read_ids(ids, file).places), connected()
    _tell(as_json, "paused", boards.pause(deployment, deployment.source(source), names), "boards paused")


@app.command(name="resume", epilog="Example: threadmill boards resume 7")
def resume_command(ids: Ids = None, file: IdFile = None, source: SourceName = None, as_json: Json = False) -> None:
    """Scan boards again that were paused."""
    names, deployment = list(read_ids(ids, file).places), connected()
    _tell(as_json, "resumed", boards.resume(deployment, deployment.source(source), names), "boards resumed")


@app.command(name="scan", epilog="Example: threadmill boards scan 7 --full")
def scan_command(
    ids: Ids = None,
    file: IdFile = None,
    full: Annotated[bool, typer.Option("--full", help="The whole board, known posts or not.")] = False,
    source: SourceName = None,
    as_json: Json = False,
) -> None:
    """Scan boards now, whatever the schedule says; one that is being scanned is scanned again after that."""
    names, deployment = list(read_ids(ids, file).places), connected()
    changed = boards.scan(deployment, deployment.source(source), names, full=full)
    _tell(as_json, "due", changed, "boards are due now")
    if not as_json:
        _warn_if_alone(deployment)


@app.command(name="check", epilog="Example: threadmill boards check boards.toml")
def check_command(file: Path, as_json: Json = False) -> None:
    """Check a boards file without touching Redis."""
    sources = {source.name: source for source in configured_sources(Config.from_environment())}
    found = read_boards(file, sources)
    counts = Counter((board.source, str(board.interval)) for board in found)
    if as_json:
        rows = [{"source": name, "interval": interval, "boards": n} for (name, interval), n in counts.items()]
        print_json({"boards": len(found), "intervals": rows})
        return
    out.print(f"{file}: {len(found):,} boards", highlight=False)
    for (name, interval), number in counts.items():
        out.print(f"  {name}: {number:,} scanned {interval}", highlight=False)


def _interval(every: str | None, cron: str | None, timezone: str | None, adaptive: str | None) -> Interval:
    bounds = None
    if adaptive is not None:
        shortest, separator, longest = adaptive.partition("..")
        if not separator:
            raise ValueError(f"--adaptive wants MIN..MAX, not {adaptive!r}")
        bounds = (shortest, longest)
    return read_interval(every=every, cron=cron, timezone=timezone, adaptive=bounds)


def _tell(as_json: bool, done: str, number: int, sentence: str) -> None:
    print_json({done: number}) if as_json else out.print(f"{number:,} {sentence}", highlight=False)


def _warn_if_alone(deployment: Deployment) -> None:
    if not any(alive(deployment.client, lane) for lane in deployment.lanes()):
        err.print("[yellow]no dispatcher runs: boards are not scanned until one is started (python -m dispatcher)[/]")


def _state(row: board_list.Row) -> str:
    if row.board is None:
        return "unreadable"
    if row.due_ms is None:
        return "paused"
    return "due" if row.is_due else "waiting"


def _table(found: list[board_list.Row]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("source", "board", "scanned", "due", "last scan", "brought"):
        table.add_column(column, justify="right" if column == "brought" else "left")
    for row in found:
        style = {"unreadable": "red", "due": "yellow", "paused": "dim"}.get(_state(row))
        table.add_row(row.source, row.id, *_cells(row), style=style)
    return table


def _cells(row: board_list.Row) -> tuple[str, str, str, str]:
    """How often, when it is due, when its last scan was, and what that brought."""
    board = row.board
    if board is None:
        return "its entry cannot be read: remove it, and add it again", "", "", ""
    last = board.last
    often = f"{board.interval}" + (f", now {duration_text(last.pace_s)}" if last.pace_s else "")
    often += f", whole {duration_text(board.full_every_s)}" if board.full_every_s else ""
    if row.due_ms is None:
        due = "paused"
    elif row.is_due:
        due = f"late {duration_text(row.late_ms // 1000)}"
    else:
        due = f"in {duration_text(-(-(row.due_ms - row.now_ms) // 1000))}"
    at = f"{duration_text((row.now_ms - last.at_ms) // 1000)} ago" if last.at_ms else "never"
    brought = "failed" if last.dead else "" if last.brought is None else f"{last.brought:,}"
    return often, due, at + (" (whole)" if last.full else ""), brought
