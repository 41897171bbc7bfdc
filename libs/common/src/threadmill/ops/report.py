"""The state of a deployment: as JSON for scripts, and as a table for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from threadmill.ops.deployment import Deployment
from threadmill.store.schedule import schedule_books
from threadmill.store.status import Books, items_waiting, stage_books

COLUMNS = ("tasks", "requests", "leased", "delayed", "dead", "accepted", "done", "filtered", "workers")


def status(deployment: Deployment) -> dict[str, Any]:
    """`{"sources": {<source>: {"stages": {<stage>: {tasks, …, held}}, "items_waiting", "schedule": {boards, …}}}}`."""
    sources = {}
    for name in deployment.sources:
        lanes = deployment.lanes(name)
        books = stage_books(deployment.client, lanes)
        sources[name] = {
            "stages": {stage: _as_json(book) for stage, book in books.items()},
            "items_waiting": items_waiting(deployment.client, lanes),
            "schedule": asdict(schedule_books(deployment.client, lanes)),
        }
    return {"sources": sources}


def table(state: dict[str, Any]) -> Table:
    """The same for people."""
    waiting = ", ".join(f"{name} {body['items_waiting']:,}" for name, body in state["sources"].items())
    view = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
    view.caption = "\n".join([f"items waiting to be stored: {waiting}", *_schedules(state)])
    view.add_column("source")
    view.add_column("stage")
    for column in COLUMNS:
        view.add_column(column, justify="right")
    for source, body in state["sources"].items():
        for stage, books in body["stages"].items():
            waits = in_words(books)
            style = "red" if books["dead"] else "yellow" if waits else None
            name = f"{stage} ({waits})" if waits else stage
            view.add_row(source, name, *(f"{books[column]:,}" for column in COLUMNS), style=style)
    return view


def in_words(books: dict[str, Any]) -> str:
    """What keeps a stage from going on, if anything does."""
    waits = [f"waits for {books['held']}"] if books["held"] else []
    return ", ".join([*(state for state in ("paused", "draining") if books[state]), *waits])


def _schedules(state: dict[str, Any]) -> Iterator[str]:
    """A line for each source that has boards."""
    for name, body in state["sources"].items():
        if (schedule := body["schedule"])["boards"]:
            late = f", up to {schedule['lateness_ms'] / 1000:,.0f} s late" if schedule["due"] else ""
            alone = "" if schedule["dispatchers"] else "; no dispatcher runs"
            yield f"boards of {name}: {schedule['boards']:,}, {schedule['due']:,} due{late}{alone}"


def _as_json(books: Books) -> dict[str, Any]:
    return asdict(books)
