"""`threadmill pause`, `resume`, `drain`, `rate`, `concurrency` and `priority`: said to Redis, heard within 2 s."""

from __future__ import annotations

from typing import Annotated

import typer

from threadmill.model.errors import ConfigError
from threadmill.model.stages import Stage
from threadmill.ops import control
from threadmill.ops.commands.common import Json, StageName, complete_sources, connected, out, print_json, progress
from threadmill.ops.deployment import Deployment, stage_argument
from threadmill.store.status import stage_books

app = typer.Typer()

Source = Annotated[
    str | None,
    typer.Option(
        "--source", autocompletion=complete_sources, help="Only this source; default: all of THREADMILL_SOURCES."
    ),
]


@app.command(name="pause", epilog="Example: threadmill pause comment --source bbs")
def pause_command(stage: StageName, source: Source = None, as_json: Json = False) -> None:
    """Request no more pages of a stage: those under way are finished, the others wait. See resume."""
    chosen, deployment = _chosen(stage, source)
    control.pause(deployment, chosen, source)
    _tell(
        chosen,
        "paused",
        source,
        as_json,
        f"{stage} is paused; pages under way are finished (threadmill resume {stage})",
    )


@app.command(name="resume", epilog="Example: threadmill resume comment")
def resume_command(stage: StageName, source: Source = None, as_json: Json = False) -> None:
    """Let a stage go on that was paused or drained."""
    chosen, deployment = _chosen(stage, source)
    control.resume(deployment, chosen, source)
    _tell(chosen, "resumed", source, as_json, f"{stage} goes on")


@app.command(name="drain", epilog="Example: threadmill drain detail")
def drain_command(stage: StageName, source: Source = None, as_json: Json = False) -> None:
    """Admit no new tasks to a stage, and work off what was admitted. See resume."""
    chosen, deployment = _chosen(stage, source)
    control.drain(deployment, chosen, source)
    _tell(
        chosen, "draining", source, as_json, f"{stage} drains: new tasks wait in its stream (threadmill resume {stage})"
    )


@app.command(name="rate", epilog="Example: threadmill rate bbs 2.5")
def rate_command(
    site: Annotated[str, typer.Argument(metavar="SITE", autocompletion=complete_sources, help="The source's name.")],
    number: Annotated[
        str, typer.Argument(metavar="N", help="Requests/s; `none`: as the source says; `unlimited`. Without: shows it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """How many requests/s a whole site gets, by all workers of all stages together."""
    wanted = _rate(number)
    deployment = connected()
    source = deployment.source(site)
    if number:
        control.change_rate(deployment, source.name, wanted)
    rate = control.rate(deployment, source.name)
    own = "no limit" if source.rate is None else f"{source.rate:g} requests/s"
    if as_json:
        print_json({"source": source.name, "rate": rate})
    elif rate is None:
        out.print(f"{source.name} gets what its source file says: {own}")
    else:
        shown = f"{rate:g} requests/s" if rate else "as many requests as workers can do"
        out.print(f"{source.name} gets {shown}, whatever its source file says ({own})")


@app.command(name="concurrency", epilog="Example: threadmill concurrency detail 32")
def concurrency_command(
    stage: StageName,
    number: Annotated[
        str, typer.Argument(metavar="N", help="Downloads at a time of each worker; `default`: THREADMILL_CONCURRENCY.")
    ] = "",
    source: Source = None,
    as_json: Json = False,
) -> None:
    """How many downloads each worker of a stage does at a time."""
    wanted = _downloads(number)
    chosen, deployment = _chosen(stage, source)
    if number:
        control.change_concurrency(deployment, chosen, source, wanted)
    downloads = control.concurrency(deployment, chosen, source)
    if as_json:
        print_json({"stage": stage, "concurrency": downloads})
    elif downloads is None:
        out.print(f"{stage}: as the workers' THREADMILL_CONCURRENCY says")
    else:
        out.print(f"{stage}: {downloads} downloads at a time of each worker")


@app.command(
    name="priority",
    epilog="Example: threadmill priority 1428571003 10",
    context_settings={"ignore_unknown_options": True},  # -5 is a number
)
def priority_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's id, as submit printed it.")],
    number: Annotated[int, typer.Argument(metavar="N", help="Larger comes first; 0 is as ever.")],
    as_json: Json = False,
) -> None:
    """Put a job's requests before or behind others: those that wait, and those to come."""
    deployment = connected()
    waiting = sum(books.requests for books in stage_books(deployment.client, deployment.lanes()).values())
    with progress(quiet=as_json or waiting < 1000) as bar:
        task = bar.add_task("placing", total=waiting)
        placed = control.reprioritize(deployment, job, number, lambda seen: bar.advance(task, seen))
    if as_json:
        print_json({"job": job, "priority": number, "placed": placed})
    else:
        out.print(f"job {job} has priority {number}; {placed:,} of its requests waited and have their new place")


def _chosen(stage: str, source: str | None) -> tuple[Stage, Deployment]:
    chosen, deployment = stage_argument(stage), connected()
    if source is not None:
        deployment.source(source)
    return chosen, deployment


def _tell(stage: Stage, state: str, source: str | None, as_json: bool, sentence: str) -> None:
    if as_json:
        print_json({"stage": stage.name, "source": source, "state": state})
    else:
        out.print(sentence + (f" [dim](source {source})[/]" if source else ""))


def _rate(text: str) -> float | None:
    if text in ("", "none"):
        return None
    if text == "unlimited":
        return 0.0
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigError(f"{text!r} is no rate: a number above 0 (requests/s), none or unlimited; to stop, use pause")
    return number


def _downloads(text: str) -> int | None:
    if text in ("", "default"):
        return None
    if not text.isdecimal() or not 1 <= int(text) <= control.MOST_DOWNLOADS:
        raise ConfigError(f"{text!r} is no concurrency: a number from 1 to {control.MOST_DOWNLOADS}, or default")
    return int(text)
