"""The operator's command line, `threadmill`."""

from __future__ import annotations

import sys

import typer

from threadmill.model.errors import TaskError, ThreadmillError
from threadmill.ops.commands import boards, control, dead, doctor, find, jobs, purge, status, submit, transfer, up
from threadmill.ops.commands.common import err
from threadmill.ops.service import EXIT_CONFIG, exit_status
from threadmill.ops.trouble import explained
from threadmill.store.connection import STORE_FAILURES

app = typer.Typer(
    name="threadmill",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Collect forums at scale. Settings come from THREADMILL_* in the environment; `threadmill doctor` shows them.",
    epilog="Exit status: 0 all is well, 1 it is not, 2 settings or arguments, 3 Redis, or what is in it, 130 Ctrl-C. "
    "The reason is one sentence on standard error; with --json, standard output has JSON or nothing.",
)

PANELS = {
    "Run": ("up", "doctor", "version"),
    "Submit": ("submit", "requeue", "boards"),
    "Look": ("status", "jobs", "job", "events", "trace", "peek", "workers", "health"),
    "Control": ("pause", "resume", "drain", "rate", "concurrency", "priority", "scale"),
    "Repair": ("dead", "export", "import", "purge"),
}
"""Under which heading `threadmill --help` lists a command, and in which order."""


def _put_together() -> None:
    groups = {"boards": boards.app, "dead": dead.app}
    modules = (up, submit, status, jobs, control, find, transfer, purge, doctor)
    commands = {command.name: command for module in modules for command in module.app.registered_commands}
    for panel, names in PANELS.items():
        for name in names:
            if name in groups:
                app.add_typer(groups[name], name=name, rich_help_panel=panel)
            else:
                command = commands.pop(name)
                command.rich_help_panel = panel
                app.registered_commands.append(command)
    if commands:
        raise RuntimeError(f"PANELS says nothing of {', '.join(str(name) for name in commands)}")


_put_together()


def main() -> None:
    """Run the command line: errors are one plain sentence, with an exit status that says what kind."""
    try:
        app()
    except TaskError as error:
        _fail(str(error), EXIT_CONFIG)
    except ThreadmillError as error:
        _fail(str(error), exit_status(error))
    except (*STORE_FAILURES, ValueError, OverflowError, TypeError, LookupError) as error:
        told = explained(error)
        if told is not None:
            _fail(str(told), exit_status(told))
        if not isinstance(error, OSError):
            raise  # a fault of ours: whoever mends it wants to see where
        _fail(str(error), 1)


def _fail(message: str, status: int) -> None:
    err.print("[red]threadmill:[/] ", end="")
    err.print(message, soft_wrap=True, highlight=False, markup=False)
    sys.exit(status)


if __name__ == "__main__":
    main()
