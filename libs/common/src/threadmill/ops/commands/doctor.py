"""`threadmill doctor` and `threadmill version`: what is set, and what is wrong with it."""

from __future__ import annotations

import typer
from rich.markup import escape

from threadmill import __version__
from threadmill.model.config import Config
from threadmill.ops.commands.common import Json, out, print_json
from threadmill.ops.doctor import examine

app = typer.Typer()


@app.command(name="doctor", epilog="Example: THREADMILL_REDIS_URL=redis://10.0.0.5/0 threadmill doctor")
def doctor_command(as_json: Json = False) -> None:
    """Show the settings (secrets hidden), and check what the deployment rests on."""
    config = Config.from_environment()
    found = examine(config)
    if as_json:
        rows = [{"subject": f.subject, "level": f.level, "message": f.message} for f in found.findings]
        print_json({"ok": found.ok, "promise": found.promise, "findings": rows, "settings": config.shown()})
    else:
        colours = {"ok": "green", "warning": "yellow", "error": "red"}
        for finding in found.findings:
            out.print(f"[{colours[finding.level]}]{finding.level:8}[/]{finding.subject}: {escape(finding.message)}")
        out.print()
        for name, value in config.shown().items():
            out.print(f"{name}={value}", markup=False, highlight=False, soft_wrap=True)
        out.print(f"\npromise: {found.promise}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if found.ok else 1)


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    out.print(__version__)
