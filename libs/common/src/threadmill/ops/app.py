"""The operator's command line, `threadmill`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import Progress

from threadmill import __version__
from threadmill.model.config import Config
from threadmill.model.errors import ConfigError, TaskError, ThreadmillError
from threadmill.model.stages import STAGES
from threadmill.ops import report, scaling
from threadmill.ops.dead import dead
from threadmill.ops.deployment import Deployment, stage_argument
from threadmill.ops.doctor import examine
from threadmill.ops.fleet import parse_replicas
from threadmill.ops.health import is_healthy
from threadmill.ops.service import EXIT_CONFIG, EXIT_STORE, exit_status
from threadmill.ops.submission import new_job_id, submit
from threadmill.ops.up import Plan, up
from threadmill.store.connection import STORE_FAILURES

app = typer.Typer(
    name="threadmill",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Collect forums at scale. Settings come from THREADMILL_* in the environment; `threadmill doctor` shows them.",
    epilog="Exit status: 0 all is well, 1 it is not, 2 settings or arguments, 3 Redis.",
)
out = Console()
err = Console(stderr=True)

app.add_typer(dead, name="dead")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SourceName = Annotated[str | None, typer.Option("--source", help="Which source, if several are configured.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Forum ids for list, post ids for the others.")]
IdFile = Annotated[Path | None, typer.Option("--file", help="Read ids from a file, one a line; - for standard input.")]
StageName = Annotated[str, typer.Argument(metavar="STAGE", help="list, detail or comment.")]


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
    data: Annotated[Path, typer.Option(help="Folder for the database, Redis and the logs.")] = Path("data"),
) -> None:
    """Run everything on this machine: Redis, the three services, the item writer."""
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
    if once and not forum:
        raise ConfigError("--once ends when its job is done: say what to collect with --forum ID")
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
    scaling.want(Deployment.connected(Config.from_environment()), wanted)
    out.print(", ".join(f"{stage}: {number} replicas wanted" for stage, number in wanted.items()))


@app.command(name="submit", epilog="Example: threadmill submit detail 4711 4712 --force")
def submit_command(
    stage: StageName,
    ids: Ids = None,
    file: IdFile = None,
    source: SourceName = None,
    job: Annotated[str, typer.Option(help="Job id; default: a new one.")] = "",
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the source's URL templates.")] = None,
    priority: Annotated[int, typer.Option(help="Larger comes first.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Even what is known already.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a stage to collect forums (list) or posts (detail, comment)."""
    _submit(stage, ids, file, source, job, param, as_json, priority=priority, force=force)


@app.command(name="requeue", epilog="Example: threadmill requeue detail 4711 --cascade")
def requeue_command(
    stage: StageName,
    ids: Ids = None,
    file: IdFile = None,
    source: SourceName = None,
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the source's URL templates.")] = None,
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
    keys = list(ids or [])
    if file is not None:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        keys += [line.strip() for line in text.splitlines() if line.strip()]
    if not keys:
        raise ConfigError("no ids: give them as arguments, or in a file with --file")
    pairs = [pair.partition("=") for pair in param or []]
    if any(not separator for _, separator, _ in pairs):
        raise ConfigError("--param wants NAME=VALUE")
    deployment = Deployment.connected(Config.from_environment())
    with Progress(console=err, transient=True, disable=as_json or len(keys) < 1000) as bar:
        task = bar.add_task("submitting", total=len(keys))
        done = submit(
            deployment,
            deployment.source(source),
            stage_argument(stage),
            keys,
            job=job or new_job_id(),
            params={name: value for name, _, value in pairs},
            progress=lambda n: bar.advance(task, n),
            **how,
        )
    if as_json:
        _print_json({"job": done.job, "submitted": done.submitted, "filtered": done.filtered})
    else:
        known = f", {done.filtered} known and left alone (--force collects them again)" if done.filtered else ""
        out.print(f"job [bold]{done.job}[/]: {done.submitted} submitted to {stage}{known}")


@app.command(name="status", epilog="Example: threadmill status --watch")
def status_command(
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing it until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks, with --watch.")] = 1.0,
) -> None:
    """What each stage holds: accepted = done + tasks + requests + leased + delayed + dead."""
    deployment = Deployment.connected(Config.from_environment())
    if not watch:
        state = report.status(deployment)
        _print_json(state) if as_json else out.print(report.table(state))
        return
    try:
        if as_json:
            while True:
                _print_json(report.status(deployment))
                time.sleep(every)
        with Live(report.table(report.status(deployment)), console=out) as live:
            while True:
                time.sleep(every)
                live.update(report.table(report.status(deployment)))
    except KeyboardInterrupt:
        return


@app.command(name="doctor", epilog="Example: THREADMILL_REDIS_URL=redis://10.0.0.5/0 threadmill doctor")
def doctor_command(as_json: Json = False) -> None:
    """Show the settings (secrets hidden), and check what the deployment rests on."""
    config = Config.from_environment()
    found = examine(config)
    if as_json:
        rows = [{"subject": f.subject, "level": f.level, "message": f.message} for f in found.findings]
        _print_json({"ok": found.ok, "promise": found.promise, "findings": rows, "settings": config.shown()})
    else:
        colours = {"ok": "green", "warning": "yellow", "error": "red"}
        for finding in found.findings:
            out.print(f"[{colours[finding.level]}]{finding.level:8}[/]{finding.subject}: {escape(finding.message)}")
        out.print()
        for name, value in config.shown().items():
            out.print(f"{name}={value}", markup=False, highlight=False, soft_wrap=True)
        out.print(f"\npromise: {found.promise}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if found.ok else 1)


@app.command(name="health", hidden=True)
def health_command(
    service: Annotated[str, typer.Argument(help="The service that should run on this host.")],
) -> None:
    """For container health checks: whether this host's replica of a service is at work."""
    config = Config.from_environment()
    if not is_healthy(Deployment.connected(config), service):
        err.print(f"no live replica of {service} on this host")
        raise typer.Exit(1)


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    out.print(__version__)


def main() -> None:
    """Run the command line: errors are one plain sentence, with an exit status that says what kind."""
    try:
        app()
    except TaskError as error:
        _fail(str(error), EXIT_CONFIG)
    except ThreadmillError as error:
        _fail(str(error), exit_status(error))
    except STORE_FAILURES as error:
        _fail(f"Redis failed: {error}", EXIT_STORE)
    except OSError as error:
        _fail(str(error), 1)


def _fail(message: str, status: int) -> None:
    err.print(f"[red]threadmill:[/] {message}", soft_wrap=True, highlight=False)
    sys.exit(status)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
