"""`threadmill up` and `threadmill scale`: the whole pipeline on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.stages import STAGES
from threadmill.ops import scaling
from threadmill.ops.commands.common import connected, err, out
from threadmill.ops.fleet import parse_replicas
from threadmill.ops.up import Plan, up

app = typer.Typer()


@app.command(
    name="up",
    epilog="Example: threadmill up --source bbs --base-url http://127.0.0.1:8000 --forum 1 --forum 2 --once",
)
def up_command(
    source: Annotated[str | None, typer.Option(help="Source file or name; default: THREADMILL_SOURCES.")] = None,
    base_url: Annotated[str, typer.Option(help="Collect the source at this address instead of its own.")] = "",
    forum: Annotated[list[str] | None, typer.Option(help="Forum id to scan; may be given several times.")] = None,
    replicas: Annotated[str, typer.Option(help="Processes per stage.")] = "list=1,detail=1,comment=1",
    once: Annotated[bool, typer.Option("--once", help="End when the job is done.")] = False,
    redis: Annotated[str, typer.Option(help="Use this Redis; default: one of our own in --data.")] = "",
    store: Annotated[str, typer.Option(help="Database URL; default: SQLite in --data.")] = "",
    boards: Annotated[Path | None, typer.Option(help="Boards file: scan them again and again.")] = None,
    data: Annotated[Path, typer.Option(help="Folder for the database, Redis and the logs.")] = Path("data"),
) -> None:
    """Run everything on this machine: Redis, the three services, the item writer, and with boards the dispatcher."""
    config = Config.from_environment()
    given = config.model_fields_set
    changes: dict[str, Any] = {}
    if source:
        changes["sources"] = (source,)
    if base_url:
        changes["base_url"] = base_url
    if redis:
        changes["redis_url"] = redis
    if store or "store_url" not in given:
        changes["store_url"] = store or f"sqlite:///{data / 'threadmill.db'}"
    if boards:
        changes["boards"] = str(boards)
    if once and not forum:
        raise ConfigError("--once ends when its job is done: say what to collect with --forum ID")
    if once and boards:
        raise ConfigError("--once ends when its job is done, and --boards never ends: leave one of them out")
    config = Config.model_validate({**config.model_dump(), **changes})
    embedded = not redis and "redis_url" not in given
    plan = Plan({**dict.fromkeys(STAGES, 1), **parse_replicas(replicas)}, forum or [], None, once, embedded, data)
    outcome = up(config, plan, out)
    if outcome.books is not None and (dead := sum(outcome.books.dead.values())):
        err.print(f"[red]{dead} pages were parked as dead letters[/]")
    raise typer.Exit(0 if outcome.ok else 1)


@app.command(name="scale", epilog="Example: threadmill scale detail=3,comment=2")
def scale_command(replicas: Annotated[str, typer.Argument(metavar="STAGE=N,...")]) -> None:
    """Tell a running `threadmill up` how many replicas a stage shall have (elsewhere: docker compose up --scale)."""
    wanted = parse_replicas(replicas)
    scaling.want(connected(), wanted)
    out.print(", ".join(f"{stage}: {number} replicas wanted" for stage, number in wanted.items()))
