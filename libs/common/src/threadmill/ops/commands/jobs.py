"""`threadmill jobs`, `job` and `events`: what was asked for, how far it is, and when it was done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from threadmill.model.errors import ConfigError
from threadmill.ops import jobs
from threadmill.ops.commands.common import Json, connected, err, out, print_json, progress
from threadmill.ops.deployment import Deployment
from threadmill.ops.times import time_text
from threadmill.store.events import Event, EventStreams
from threadmill.store.jobs import Job

app = typer.Typer()

EXIT_TIMEOUT = 4
"""The job was not finished in the time that `--timeout` gave."""


@app.command(name="jobs", epilog="Example: threadmill jobs --open --limit 5")
def jobs_command(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    unfinished: Annotated[bool, typer.Option("--open", help="Only those that are not finished.")] = False,
    as_json: Json = False,
) -> None:
    """What was submitted, newest first, and how far it is."""
    found = [jobs.as_json(job) for job in jobs.newest(connected(), limit, unfinished=unfinished)]
    if as_json:
        print_json(found)
    else:
        nothing = "every job is finished" if unfinished else "nothing was submitted yet"
        out.print(jobs.table(found) if found else nothing)


@app.command(
    name="job",
    epilog="Example: threadmill job 1428571003 --wait --stored --timeout 600\n\n"
    "Exit status: 0 no dead letters (with --wait: and finished), 1 dead letters, 2 no such job, 3 Redis, "
    "4 not finished in time.",
)
def job_command(
    job: Annotated[str, typer.Argument(metavar="ID", help="The job's id, as submit printed it.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is finished.")] = False,
    stored: Annotated[bool, typer.Option("--stored", help="And until the database has all of it.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds to wait at most.")] = None,
    as_json: Json = False,
) -> None:
    """One job: what each stage accepted, did, and has left; or wait until it is finished."""
    deployment = connected()
    if not wait:
        if stored or timeout is not None:
            raise ConfigError("--stored and --timeout say how to wait: add --wait")
        seen, over = jobs.known_job(deployment, job), True
    else:
        awaited = _awaited(deployment, job, stored=stored, timeout_s=timeout, quiet=as_json)
        seen, over = awaited.job, awaited.over
    shown = jobs.as_json(seen)
    if as_json:
        print_json(shown)
    else:
        out.print(f"job [bold]{job}[/]: {jobs.sentence(shown)}", highlight=False)
        out.print(jobs.stage_table(shown))
    raise typer.Exit(_status(shown, over=over, timeout=timeout))


def _awaited(deployment: Deployment, job: str, *, stored: bool, timeout_s: float | None, quiet: bool) -> jobs.Awaited:
    with progress(quiet=quiet) as bar:
        task = bar.add_task(f"job {job}", total=None)

        def seen(found: Job) -> None:
            total = sum(found.books.accepted.values())
            bar.update(task, total=total or None, completed=total - found.books.open)

        return jobs.wait_for_job(deployment, job, stored=stored, timeout_s=timeout_s, seen=seen)


def _status(shown: dict[str, Any], *, over: bool, timeout: float | None) -> int:
    if not over:
        what = "its items are not stored yet" if shown["state"] == "finished" else f"{shown['open']:,} open"
        err.print(f"job {shown['job']} is not done after {timeout:g} s: {what}", highlight=False)
        return EXIT_TIMEOUT
    if shown["dead"]:
        err.print(f"[red]{shown['dead']:,} pages were parked as dead letters[/] (threadmill dead list STAGE)")
        return 1
    return 0


@app.command(name="events", epilog="Example: threadmill events --follow --json")
def events_command(
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="So many of those that happened already.")] = 20,
    as_json: Json = False,
) -> None:
    """Jobs that were finished and, with THREADMILL_POST_EVENTS, posts that are complete; oldest first."""
    deployment = connected()
    streams = EventStreams(deployment.client, deployment.lanes())
    try:
        last = streams.last(limit)
        _show(last, as_json)
        if not last and not follow and not as_json:
            out.print("nothing was finished yet")
        while follow:
            _show(streams.wait(), as_json)
    except KeyboardInterrupt:
        return


def _show(events: list[Event], as_json: bool) -> None:
    for event in events:
        fields = {
            name: int(text) if text.isdecimal() and name != "key" else text for name, text in event.fields.items()
        }
        fields["job"] = event.fields.get("job", "")
        if as_json:
            print_json({"at": time_text(event.at_ms), "source": event.lane.source, **fields})
        else:
            rest = "  ".join(f"{name} {text}" for name, text in event.fields.items() if name != "event")
            line = f"{time_text(event.at_ms)[:19]}  {event.lane.source}  {event.fields.get('event', '')}  {rest}"
            out.print(line, markup=False, highlight=False, soft_wrap=True)
