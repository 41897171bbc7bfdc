"""`threadmill dead`: what was parked, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.table import Table

from threadmill.model.errors import ConfigError
from threadmill.ops import letters
from threadmill.ops.commands.common import (
    Json,
    StageName,
    Yes,
    complete_sources,
    confirm,
    connected,
    out,
    print_json,
    progress,
)
from threadmill.ops.deployment import stage_argument

app = typer.Typer(no_args_is_help=True, help="Dead letters: list, show, replay or drop what was parked.")

Reason = Annotated[str | None, typer.Option("--reason", help="Only those parked for this reason.")]
Ids = Annotated[list[str] | None, typer.Option("--id", help="Only this letter, by its id; may be given several times.")]
SourceName = Annotated[str | None, typer.Option("--source", autocompletion=complete_sources, help="Only this source.")]
Limit = Annotated[int, typer.Option("--limit", help="At most so many.")]


@app.command(name="list", epilog="Example: threadmill dead list detail --reason http-500")
def list_command(
    stage: StageName, reason: Reason = None, source: SourceName = None, limit: Limit = 50, as_json: Json = False
) -> None:
    """What is parked, oldest first, and how much of each reason."""
    deployment = connected()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("id", "at", "reason", "error"):
        table.add_column(column, overflow="fold" if column == "error" else "ellipsis")
    reasons: Counter[str] = Counter()
    for number, found in enumerate(letters.find(deployment, stage_argument(stage), source=source, reason=reason)):
        reasons[found.letter.reason] += 1
        if number >= limit:
            continue
        if as_json:
            print_json(found.as_json())
        else:
            letter = found.as_json()
            table.add_row(letter["id"], letter["at"][:19], letter["reason"], letter["error"][:200])
    if not as_json:
        out.print(table if reasons else "nothing is parked")
        out.print(", ".join(f"{count:,} {name}" for name, count in reasons.most_common()), style="bold")


@app.command(name="show", epilog="Example: threadmill dead show detail --id bbs.0:7")
def show_command(stage: StageName, ids: Ids = None, source: SourceName = None, as_json: Json = False) -> None:
    """All that is known of some letters, with the bytes that were parked."""
    if not ids:
        raise ConfigError("which letters? --id ID, as `threadmill dead list` names them")
    deployment = connected()
    shown = list(letters.find(deployment, stage_argument(stage), source=source, names=ids))
    for found in shown:
        if as_json:
            print_json(found.as_json())
        else:
            _show(found)
    if missing := set(ids) - {found.name for found in shown}:
        raise ConfigError(f"there is no letter {', '.join(sorted(missing))} in stage {stage}")


def _show(found: letters.Found) -> None:
    letter = found.as_json()
    history = letter.pop("history")
    for name, value in letter.items():
        out.print(f"{name:>10}  {value}", markup=False, highlight=False)
    for death in history:
        line = "{at}  {reason}, {deliveries} deliveries, {failures} failures  {error}".format_map(death)
        out.print(f"    before  {line}", markup=False, highlight=False)
    out.print()


@app.command(name="replay", epilog="Example: threadmill dead replay detail --reason http-500")
def replay_command(
    stage: StageName, reason: Reason = None, ids: Ids = None, source: SourceName = None, as_json: Json = False
) -> None:
    """Send letters back to work: all of a stage, or those of a reason, or these ids."""
    _handle("replayed", stage, reason, ids, source, as_json)


@app.command(name="drop", epilog="Example: threadmill dead drop detail --reason not-json --yes")
def drop_command(
    stage: StageName,
    reason: Reason = None,
    ids: Ids = None,
    source: SourceName = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give letters up for good. They count as done."""
    _handle("dropped", stage, reason, ids, source, as_json, ask=not yes)


def _handle(
    done: str,
    stage_name: str,
    reason: str | None,
    ids: list[str] | None,
    source: str | None,
    as_json: bool,
    *,
    ask: bool = False,
) -> None:
    stage = stage_argument(stage_name)
    deployment = connected()
    found = list(letters.find(deployment, stage, source=source, reason=reason, names=ids or ()))
    if ask and found:
        confirm(f"Give up {len(found)} dead letters of {stage.name} for good?", yes=False)
    act = letters.replay if done == "replayed" else letters.drop
    with progress(quiet=as_json or len(found) < 1000) as bar:
        task = bar.add_task(done, total=len(found))
        count = act(deployment, stage, found, lambda n: bar.advance(task, n))
    if as_json:
        print_json({done: count})
    else:
        out.print(f"{count} dead letters of {stage.name} {done}")
