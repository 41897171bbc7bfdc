"""Putting back work that was exported, here or in another deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from threadmill.model.task import Task
from threadmill.store.calls import Arg, Call
from threadmill.store.letters import DeadLetter, written
from threadmill.store.scripts import compose
from threadmill.store.stage import StageStore
from threadmill.store.work import Record

TOKEN_MS = 24 * 3_600_000
"""How long it is remembered that a batch was put back, so that it may be said again after an interruption."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A page to be put back, with the version at which its key was known."""

    record: Record
    key: str
    version: str
    due_ms: int | None = None
    """When it is to be tried again, if it was delayed."""


@dataclass(frozen=True, slots=True)
class Parked:
    """A dead letter to be put back, with the version at which its key was known."""

    letter: DeadLetter
    key: str
    version: str


def restore_tasks(store: StageStore, tasks: Sequence[Task], *, token: str, express: bool) -> Call[int]:
    """Tasks wait again, whatever is known of them; answers how many, or -1 if `token` was used in the last day."""
    keys = store.keys
    args: list[Arg] = [store.stage.name, TOKEN_MS]
    for task in tasks:
        args += [task.job, task.key, store.task_filter.id_of(task.key), task.version]
        args += [task.parent, task.depth, task.known, task.extras()]
    script = compose("restore_tasks", {"seen_task": store.task_filter.lua})
    stream = keys.express if express else keys.tasks
    roots = (stream, keys.stats, keys.seen, store.lane.jobs_prefix, _token(store, token))
    return Call(script, roots, tuple(args), int)


def restore_requests(store: StageStore, pages: Sequence[Waiting], *, token: str) -> Call[int]:
    """Pages wait again, or are delayed; answers as `restore_tasks`."""
    keys = store.keys
    args: list[Arg] = [store.stage.name, TOKEN_MS]
    for page in pages:
        record = page.record
        args += [record.job, record.run, record.priority, record.deliveries, record.failures]
        args += [record.history, record.payload, "" if page.due_ms is None else page.due_ms]
        args += [store.task_filter.id_of(page.key) if page.key else "", page.version]
    script = compose("restore_requests", {"score": store.order.lua, "seen_task": store.task_filter.lua})
    roots = (keys.requests, keys.delayed, keys.stats, keys.runs, keys.seen, store.lane.jobs_prefix)
    return Call(script, (*roots, _token(store, token)), tuple(args), int)


def restore_letters(store: StageStore, letters: Sequence[Parked], *, token: str) -> Call[int]:
    """Letters lie parked again; answers as `restore_tasks`."""
    keys = store.keys
    args: list[Arg] = [store.stage.name, TOKEN_MS]
    for parked in letters:
        letter, record = parked.letter, parked.letter.record
        args += [letter.kind, letter.reason, letter.error, letter.at_ms, letter.job, written(letter.history)]
        args += [letter.body, record.priority if record else 0, letter.deliveries, letter.failures]
        args += [store.task_filter.id_of(parked.key) if parked.key else "", parked.version]
    script = compose("restore_letters", {"seen_task": store.task_filter.lua})
    roots = (keys.dead, keys.dead_index, keys.stats, keys.seen, store.lane.jobs_prefix, _token(store, token))
    return Call(script, roots, tuple(args), int)


def _token(store: StageStore, token: str) -> str:
    return store.keys.seen_part(f"restored:{token}")
