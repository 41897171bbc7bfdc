"""`threadmill submit` and `threadmill requeue`: asking a stage for work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from threadmill.model.errors import ConfigError
from threadmill.model.stages import LIST
from threadmill.ops.commands.common import (
    IdFile,
    Ids,
    Json,
    Params,
    SourceName,
    StageName,
    check_ids,
    connected,
    out,
    print_json,
    progress,
    read_ids,
    read_params,
)
from threadmill.ops.deployment import stage_argument
from threadmill.ops.submission import new_job_id, submit

app = typer.Typer()


@app.command(name="submit", epilog="Example: threadmill submit detail 4711 4712 --force")
def submit_command(
    stage: StageName,
    ids: Ids = None,
    file: IdFile = None,
    source: SourceName = None,
    job: Annotated[str, typer.Option(help="Job id; default: a new one.")] = "",
    param: Params = None,
    priority: Annotated[int, typer.Option(help="Larger comes first.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Even what is known already.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="For list: the whole board, to its last page, not only down to known posts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a stage to collect forums (list) or posts (detail, comment)."""
    if full and stage != LIST.name:
        raise ConfigError(f"--full scans whole boards, so it is for the stage {LIST.name}, not for {stage}")
    _submit(stage, ids, file, source, job, param, as_json, priority=priority, force=force, full=full)


@app.command(name="requeue", epilog="Example: threadmill requeue detail 4711 --cascade")
def requeue_command(
    stage: StageName,
    ids: Ids = None,
    file: IdFile = None,
    source: SourceName = None,
    param: Params = None,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also what it hands down, e.g. a post's comments.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Collect again now: past the dupefilter, and past any backlog."""
    _submit(stage, ids, file, source, "", param, as_json, force=True, cascade=cascade, express=True)


def _submit(
    stage: str,
    ids: list[str] | None,
    file: Path | None,
    source: str | None,
    job: str,
    param: list[str] | None,
    as_json: bool,
    **how: Any,
) -> None:
    given, params = read_ids(ids, file), read_params(param)
    deployment, one = connected(), stage_argument(stage)
    site = deployment.source(source)
    check_ids(site.rules(one.name), given, params)
    keys = list(given.places)
    with progress(quiet=as_json or len(keys) < 1000) as bar:
        task = bar.add_task("submitting", total=len(keys))
        done = submit(
            deployment,
            site,
            one,
            keys,
            job=job or new_job_id(),
            params=params,
            progress=lambda n: bar.advance(task, n),
            **how,
        )
    if as_json:
        print_json({"job": done.job, "submitted": done.submitted, "filtered": done.filtered})
    else:
        known = f", {done.filtered} known and left alone (--force collects them again)" if done.filtered else ""
        out.print(f"job [bold]{done.job}[/]: {done.submitted} submitted to {stage}{known}")
        if given.doubles:
            out.print(f"{given.doubles:,} ids were given more than once, and submitted once")
