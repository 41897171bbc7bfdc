"""`threadmill up`: the whole pipeline on one machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from threadmill.model.boards_file import read_boards
from threadmill.model.config import Config
from threadmill.model.stages import LIST, STAGES
from threadmill.ops import report, scaling
from threadmill.ops.deployment import Deployment
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.fleet import Fleet
from threadmill.ops.submission import new_job_id, submit
from threadmill.store.connection import STORE_FAILURES
from threadmill.store.status import JobBooks, items_waiting, job_books
from threadmill.store.trouble import meaning

TICK_S = 0.25
TELL_S = 2.0
"""Without a terminal, a line this often instead of a live table."""


@dataclass(frozen=True)
class Plan:
    """What `up` was asked for."""

    replicas: dict[str, int]
    forums: list[str] = field(default_factory=list)
    source: str | None = None
    once: bool = False
    embedded: bool = True
    """Start a Redis of our own; else use the one of the settings."""
    data: Path = Path("data")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended."""

    job: str | None
    books: JobBooks | None
    seconds: float
    restarts: int
    interrupted: bool

    @property
    def ok(self) -> bool:
        """Interrupted by hand, or a job that finished without dead letters."""
        return self.interrupted or self.books is None or (self.books.finished and not sum(self.books.dead.values()))


def up(config: Config, plan: Plan, console: Console, tend: Callable[[Fleet], None] = lambda _: None) -> Outcome:
    """Run until the job is done (`once`) or Ctrl-C; all is stopped in good order. `tend` is called every tick."""
    with _redis(config, plan) as settings, _interruptible() as interrupted:
        deployment = Deployment.connected(settings, wait_ms=settings.redis_wait_ms)
        fleet = Fleet(_environment(settings), plan.data / "logs")
        started = time.monotonic()
        if plan.embedded:
            console.print("Redis is ours; for other commands: ", end="")
            console.print(f"export THREADMILL_REDIS_URL={settings.shown()['THREADMILL_REDIS_URL']}", style="bold")
        job = _begin(deployment, plan, console)
        books: JobBooks | None = None
        try:
            scaling.forget(deployment)
            fleet.scale("item_writer", 1)
            if settings.boards and not plan.once:
                fleet.scale("dispatcher", 1)
            for stage, replicas in plan.replicas.items():
                fleet.scale(STAGES[stage].service, replicas)
            with _view(console) as show:
                while not interrupted:
                    for told in fleet.tend():
                        console.print(f"[yellow]{told}[/]")
                    tend(fleet)
                    time.sleep(TICK_S)
                    try:
                        books, waiting = _look(deployment, job, show, started)
                        for stage, replicas in scaling.wanted(deployment).items():
                            fleet.scale(STAGES[stage].service, replicas)
                    except (*STORE_FAILURES, ValueError) as error:
                        told = escape(meaning(error) or f"cannot be read: {error} (see threadmill doctor)")
                        console.print(f"[red]Redis {told}[/]")
                        continue
                    if plan.once and books is not None and books.finished and waiting == 0:
                        break
        finally:
            seconds = time.monotonic() - started
            console.print("stopping: pages under way are finished or given back")
            fleet.stop()
            deployment.client.close()
        return Outcome(job, books, seconds, fleet.restarts, bool(interrupted))


def _begin(deployment: Deployment, plan: Plan, console: Console) -> str | None:
    if deployment.config.boards and not plan.once:
        boards = read_boards(Path(deployment.config.boards), deployment.sources)
        console.print(f"{len(boards):,} boards of {deployment.config.boards} are scanned again and again")
    if not plan.forums:
        return None
    source = deployment.source(plan.source)
    done = submit(deployment, source, LIST, plan.forums, job=new_job_id())
    console.print(f"job [bold]{done.job}[/]: {done.submitted} forums of {source.name} submitted")
    return done.job


def _look(
    deployment: Deployment, job: str | None, show: Callable[[dict[str, Any], float], None], started: float
) -> tuple[JobBooks | None, int]:
    state = report.status(deployment)
    show(state, time.monotonic() - started)
    lanes = deployment.lanes()
    books = job_books(deployment.client, lanes, job) if job else None
    return books, items_waiting(deployment.client, lanes)


@contextmanager
def _redis(config: Config, plan: Plan) -> Iterator[Config]:
    if not plan.embedded:
        yield config
        return
    with EmbeddedRedis(plan.data / "redis") as server:
        yield config.model_copy(update={"redis_url": type(config.redis_url)(server.url)})


def _environment(config: Config) -> dict[str, str]:
    """The settings the children get, whatever changed them on the way here."""
    values = {}
    for name in Config.model_fields:
        value = getattr(config, name)
        secret = getattr(value, "get_secret_value", None)
        text = secret() if secret else ",".join(value) if isinstance(value, tuple) else str(value)
        values[f"THREADMILL_{name.upper()}"] = text
    return values


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """A list that stays empty until SIGINT or SIGTERM."""
    seen: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        seen.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _view(console: Console) -> Iterator[Callable[[dict[str, Any], float], None]]:
    """A live table on a terminal, a line now and then elsewhere."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=False) as live:
            yield lambda state, seconds: live.update(
                Group(report.table(state), Text(f"{seconds:.0f} s   Ctrl-C stops in good order", style="dim"))
            )
        return
    told = 0.0

    def tell(state: dict[str, Any], seconds: float) -> None:
        nonlocal told
        if seconds - told >= TELL_S:
            told = seconds
            console.print(f"{seconds:5.0f} s  {_line(state)}")

    yield tell


def _line(state: dict[str, Any]) -> str:
    parts = []
    for source, body in state["sources"].items():
        stages = ", ".join(
            f"{stage} {books['done']:,}/{books['accepted']:,}" + (f" ({books['dead']} dead)" if books["dead"] else "")
            for stage, books in body["stages"].items()
        )
        parts.append(f"{source}: {stages}, {body['items_waiting']:,} items waiting")
    return "; ".join(parts)
