"""`make run`: start the demo forum, collect it with the whole pipeline, and compare every row with the truth."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo_forum.check import Check, compare, rows_of
from threadmill.model.config import Config
from threadmill.model.errors import ThreadmillError
from threadmill.model.stages import STAGES
from threadmill.ops.fleet import parse_replicas
from threadmill.ops.service import exit_status
from threadmill.ops.up import Outcome, Plan, up

FORUMS = 10
SHOWN = ("expected", "stored", "missing", "unexpected", "duplicate")
LEASE_TTL_MS = 5_000
"""Short, so that killing workers during the demo is made good while one watches."""


@contextmanager
def demo_forum(folder: Path, options: list[str]) -> Iterator[str]:
    """Serve a demo forum on a free loopback port; its URL."""
    port_file = folder / "forum.port"
    with (folder / "forum.log").open("wb") as log:
        server = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "demo_forum", "--port", "0", "--port-file", str(port_file), *options],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 60
            while not port_file.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the demo forum did not start; see {folder / 'forum.log'}")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{int(port_file.read_text())}"
        finally:
            server.terminate()
            server.wait(10)


def hits(url: str) -> int:
    """Requests the forum has seen for its three interfaces."""
    with urllib.request.urlopen(f"{url}/hits", timeout=30) as response:  # noqa: S310 - a loopback URL of our own
        return int(json.load(response)["total"])


def write_report(folder: Path, check: Check, outcome: Outcome, downloads: int) -> Path:
    """`report.json`: posts and comments, seconds, pages committed, downloads the forum saw."""
    rows = {"posts": asdict(check.posts), "comments": asdict(check.comments)}
    books = outcome.books
    report = {
        **{name: {key: tally[key] for key in SHOWN} for name, tally in rows.items()},
        "seconds": round(outcome.seconds, 3),
        "pages": sum(books.done.values()) if books else 0,
        "downloads": downloads,
    }
    path = folder / "report.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path


def show(console: Console, check: Check) -> None:
    """The table people look at."""
    table = Table(title="stored against the forum's truth")
    table.add_column("")
    for name in SHOWN:
        table.add_column(name, justify="right")
    for name, tally in (("posts", check.posts), ("comments", check.comments)):
        style = "green" if tally.ok else "red"
        table.add_row(name, *(f"{getattr(tally, column):,}" for column in SHOWN), style=style)
    console.print(table)
    for name, tally in (("posts", check.posts), ("comments", check.comments)):
        if tally.differing:
            console.print(f"[red]{tally.differing} {name} differ in their contents, e.g. {tally.examples}[/]")


def main() -> int:
    """0 when every row is stored once with its true content and nothing else is; 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo_forum.run", description=__doc__)
    parser.add_argument("--replicas", default="list=1,detail=1,comment=1", help="processes per stage")
    parser.add_argument("--data", type=Path, default=Path("data/demo"), help="folder, emptied first")
    parser.add_argument("forum_options", nargs="*", help="options of `python -m demo_forum`, after --")
    arguments = parser.parse_args()
    console = Console()
    folder: Path = arguments.data
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with demo_forum(folder, arguments.forum_options) as url:
            os.environ.setdefault("THREADMILL_LEASE_TTL_MS", str(LEASE_TTL_MS))
            database = folder / "threadmill.db"
            config = Config.model_validate(
                {
                    **Config.from_environment().model_dump(),
                    "sources": ("bbs",),
                    "base_url": url,
                    "store_url": f"sqlite:///{database}",
                }
            )
            replicas = {**dict.fromkeys(STAGES, 1), **parse_replicas(arguments.replicas)}
            forums = [str(number) for number in range(1, FORUMS + 1)]
            console.print(f"the demo forum is at {url}; everything is kept in {folder}/")
            outcome = up(config, Plan(replicas, forums, once=True, data=folder), console)
            downloads = hits(url)
            check = compare(rows_of(database, "posts"), rows_of(database, "comments"), url)
    except ThreadmillError as error:
        console.print(f"[red]{error}[/]")
        return exit_status(error)
    show(console, check)
    report = write_report(folder, check, outcome, downloads)
    pages = sum(outcome.books.done.values()) if outcome.books else 0
    console.print(f"{pages:,} pages in {outcome.seconds:.1f} s, {downloads:,} downloads; {report}")
    return 0 if check.ok and outcome.ok and not outcome.interrupted else 1


if __name__ == "__main__":
    sys.exit(main())
