"""The operator's command line, `threadmill`."""

from __future__ import annotations

import sys

import typer

from threadmill.model.errors import TaskError, ThreadmillError
from threadmill.ops.commands import (
    boards,
    control,
    dead,
    doctor,
    find,
    jobs,
    purge,
    status,
    submit,
    transfer,
    up,
)
from threadmill.ops.commands.common import err
from threadmill.ops.service import EXIT_CONFIG, EXIT_STORE, exit_status
from threadmill.store.connection import STORE_FAILURES

app = typer.Typer(
    name="threadmill",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Collect forums at scale. Settings come from THREADMILL_* in the environment; `threadmill doctor` shows them.",
    epilog="Exit status: 0 all is well, 1 it is not, 2 settings or arguments, 3 Redis.",
)
app.add_typer(up.app)
app.add_typer(submit.app)
app.add_typer(status.app)
app.add_typer(jobs.app)
app.add_typer(control.app)
app.add_typer(find.app)
app.add_typer(boards.app, name="boards")
app.add_typer(dead.app, name="dead")
app.add_typer(transfer.app)
app.add_typer(purge.app)
app.add_typer(doctor.app)


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


if __name__ == "__main__":
    main()
