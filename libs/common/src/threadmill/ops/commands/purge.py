"""`threadmill purge`: waiting work is thrown away."""

from __future__ import annotations

import typer

from threadmill.ops.commands.common import (
    Json,
    RemovableQueue,
    SourceName,
    StageName,
    Yes,
    confirm,
    connected,
    out,
    print_json,
    progress,
)
from threadmill.ops.deployment import stage_argument
from threadmill.ops.pieces import REMOVABLE, held_in, places_named
from threadmill.ops.purge import throw_away

app = typer.Typer()


@app.command(name="purge", epilog="Example: threadmill purge comment --queue tasks --yes")
def purge_command(
    stage: StageName,
    queue: RemovableQueue = "waiting",
    source: SourceName = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Throw waiting work away: it counts as done, and may be submitted again. Leased pages are left alone."""
    one, places = stage_argument(stage), places_named(queue, REMOVABLE)
    deployment = connected()
    held = {place: held_in(deployment, one, [place], source) for place in places}
    total = sum(held.values())
    if total:
        what = ", ".join(f"{number:,} {place}" for place, number in held.items() if number)
        confirm(f"Throw away all that waits in {one.name} ({what})?", yes=yes)
    with progress(quiet=as_json or total < 1000) as bar:
        task = bar.add_task("purging", total=total)
        dropped = throw_away(deployment, one, places, source=source, told=lambda n: bar.advance(task, n))
    if as_json:
        print_json({"purged": dict(dropped)})
        return
    what = ", ".join(f"{number:,} {place}" for place, number in dropped.items() if number)
    out.print(f"purged from {one.name}: {what or 'nothing'}", highlight=False)
