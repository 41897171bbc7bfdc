"""`threadmill status` and `threadmill health`: what a deployment holds, and whether a replica is at work."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.live import Live

from threadmill.ops import report
from threadmill.ops.commands.common import Json, connected, err, out, print_json
from threadmill.ops.health import is_healthy

app = typer.Typer()


@app.command(name="status", epilog="Example: threadmill status --watch")
def status_command(
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing it until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks, with --watch.")] = 1.0,
) -> None:
    """What each stage holds: accepted = done + tasks + requests + leased + delayed + dead."""
    deployment = connected()
    if not watch:
        state = report.status(deployment)
        print_json(state) if as_json else out.print(report.table(state))
        return
    try:
        if as_json:
            while True:
                print_json(report.status(deployment))
                time.sleep(every)
        with Live(report.table(report.status(deployment)), console=out) as live:
            while True:
                time.sleep(every)
                live.update(report.table(report.status(deployment)))
    except KeyboardInterrupt:
        return


@app.command(name="health", hidden=True)
def health_command(
    service: Annotated[str, typer.Argument(help="The service that should run on this host.")],
) -> None:
    """For container health checks: whether this host's replica of a service is at work."""
    if not is_healthy(connected(), service):
        err.print(f"no live replica of {service} on this host")
        raise typer.Exit(1)
