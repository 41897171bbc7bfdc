"""One stage in one lane: its verbs, as calls to be run alone or together (see `calls`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from threadmill.model.errors import TaskError
from threadmill.model.keys import GROUP, Lane
from threadmill.model.stages import STAGES, Stage
from threadmill.model.task import Task
from threadmill.store.calls import Arg, Call
from threadmill.store.filters import Dupefilter, RunFilter, VersionedFilter
from threadmill.store.orders import PRIORITY, QueueOrder
from threadmill.store.scripts import Script, compose
from threadmill.store.work import (
    NO_MARKS,
    SEPARATOR,
    Admission,
    Child,
    Committed,
    Delay,
    Entry,
    Known,
    Lease,
    Leased,
    Marks,
    PageCommit,
    Park,
    Record,
    Refusal,
)

EXPRESS = 2
"""How a commit is told that a forced subtask goes by the express stream: an operator waits for it."""


class StageStore:
    """Builds the verbs of a stage; holds no connection and no state."""

    def __init__(
        self,
        lane: Lane,
        stage: Stage,
        *,
        order: QueueOrder = PRIORITY,
        request_filter: Dupefilter | None = None,
        task_filter: Dupefilter | None = None,
    ) -> None:
        self.lane = lane
        self.stage = stage
        self.keys = lane.stage(stage.name)
        self.order = order
        self.request_filter = request_filter or RunFilter()
        self.task_filter = task_filter or VersionedFilter()
        self._targets = {name: at for at, name in enumerate(stage.hands_to, 1)}
        strategies = {
            "score": order.lua,
            "seen_request": self.request_filter.lua,
            "seen_task": self.task_filter.lua,
        }
        uses = {
            "submit": ("seen_task",),
            "admit": ("score",),
            "lease": ("score",),
            "commit": ("score", "seen_request", "seen_task"),
            "enqueue": ("score", "seen_request"),
            "release": ("score",),
            "reclaim": ("score",),
            "replay": ("score",),
            "drop": ("seen_request",),
            "known": ("seen_task",),
        }
        plain = ("refuse", "renew", "delay", "hold", "park", "report", "leave")
        self._scripts: dict[str, Script] = {
            verb: compose(verb, {name: strategies[name] for name in uses.get(verb, ())}) for verb in (*uses, *plain)
        }

    def load(self, client: redis.Redis) -> None:
        """Tell Redis the scripts beforehand, so that the first trips run in the order they were sent."""
        for script in self._scripts.values():
            client.script_load(script.text)

    def submit(
        self, tasks: Sequence[Task], *, token: str, job: str = "", express: bool = False
    ) -> Call[tuple[int, int]]:
        """Ask for work. Answers (submitted, filtered), or (-1, 0) if `token` was used in the last ten minutes."""
        keys = self.keys
        args: list[Arg] = [self.stage.name, token, job]
        for task in tasks:
            args += [task.key, self._task_id(task), task.version, self._force(task)]
            args += [task.parent, task.depth, task.extras()]
        stream = keys.express if express else keys.tasks
        token_key = keys.seen_part(f"submitted:{token}")
        return self._call("submit", (stream, keys.stats, keys.seen, self.lane.jobs_prefix, token_key), args, tuple)

    def admit(self, admissions: Sequence[Admission], *, express: bool) -> Call[list[int]]:
        """Turn tasks of one stream into their root requests. Answers 1 per task, 0 if another worker did it."""
        keys = self.keys
        args: list[Arg] = [GROUP, self.stage.name]
        for admission in admissions:
            entry = admission.entry
            args += [entry.id, int(entry.streamed), admission.job, entry.history, len(admission.roots)]
            for priority, payload in admission.roots:
                args += [priority, payload]
        stream = keys.express if express else keys.tasks
        return self._call("admit", (stream, keys.requests, keys.stats, keys.runs, self.lane.jobs_prefix), args, list)

    def refuse(self, refusals: Sequence[Refusal], *, express: bool) -> Call[list[int]]:
        """Park tasks of one stream that cannot be admitted, with their bytes."""
        keys = self.keys
        args: list[Arg] = [GROUP, self.stage.name]
        for refusal in refusals:
            entry = refusal.entry
            job = entry.fields.get(b"j", b"").replace(SEPARATOR, b"")
            args += [entry.id, int(entry.streamed), job, entry.history]
            args += [refusal.reason, refusal.error, self._bytes_of(entry)]
        stream = keys.express if express else keys.tasks
        return self._call("refuse", (stream, keys.stats, keys.dead, keys.dead_index, self.lane.jobs_prefix), args, list)

    def lease(
        self, want: int, *, worker: str, number: int, ttl_ms: int, interval_us: int = 0, marks: Marks = NO_MARKS
    ) -> Call[Leased]:
        """Take up to `want` requests; with 0, only hear what operators want.

        A worker numbers its calls upwards; `interval_us` is the site's pace; above its `marks` nothing is leased.
        """
        keys = self.keys
        roots = [keys.requests, keys.delayed, keys.leases, keys.leased, keys.control, self.lane.site, keys.reports]
        roots += [keys.stats, self.lane.jobs_prefix, self.lane.items]
        for name in self._targets:
            target = self.lane.stage(name)
            roots += [target.tasks, target.express, target.requests]
        args: list[Arg] = [worker, number, want, ttl_ms, interval_us, int(self.stage.drains)]
        args += [marks.backlog_high, marks.backlog_low, marks.items_high, marks.items_low, ",".join(self._targets)]
        return self._call("lease", tuple(roots), args, _leased)

    def commit(self, pages: Sequence[PageCommit], *, telling: bool = False) -> Call[list[Committed]]:
        """Make real what pages caused; each page only if its lease is still held.

        `telling`: write an event for each post that is complete.
        """
        keys = self.keys
        roots = [keys.leases, keys.leased, keys.requests, keys.stats, keys.runs, keys.seen]
        roots += [self.lane.items, self.lane.items_stats, self.lane.jobs_prefix, keys.met]
        for name in self._targets:
            target = self.lane.stage(name)
            roots += [target.tasks, target.express, target.stats, target.seen]
        args: list[Arg] = [self.stage.name, ",".join(self._targets), int(telling), len(pages)]
        for page in pages:
            args += [page.lease_id, page.outcome, page.fingerprint]
            args += [page.key, self.task_filter.id_of(page.key), "g" if page.gone else "d", int(page.met)]
            args.append(len(page.children))
            for child in page.children:
                args += [int(child.when) + 10 * child.margin, child.fingerprint, child.priority, child.payload]
            args.append(len(page.subtasks))
            for task in page.subtasks:
                args += [
                    self._targets[task.stage],
                    task.key,
                    self._task_id(task),
                    task.version,
                    self._force(task, EXPRESS),
                ]
                args += [task.parent, task.depth, task.extras()]
            args += [len(page.items), b"[" + b",".join(page.items) + b"]" if page.items else b""]
        return self._call("commit", tuple(roots), args, _committed)

    def enqueue(self, roots: Sequence[Child], *, token: str, job: str = "") -> Call[int]:
        """Queue requests that no task and no page asked for (a plain spider's start requests); answers how many.

        `token` must be new for every call.
        """
        keys = self.keys
        args: list[Arg] = [self.stage.name, job]
        for root in roots:
            args += [root.fingerprint, root.priority, root.payload]
        roots_key = (keys.requests, keys.stats, keys.seen, self.lane.jobs_prefix, keys.seen_part(f"submitted:{token}"))
        return self._call("enqueue", roots_key, args, int)

    def renew(self, lease_ids: Sequence[str], *, ttl_ms: int) -> Call[list[str]]:
        """Keep leases; answers the ids of those that are no longer held."""
        return self._call("renew", (self.keys.leases,), [ttl_ms, *lease_ids], _texts)

    def release(self, lease_ids: Sequence[str]) -> Call[int]:
        """Give leases back untouched; answers how many were still held."""
        keys = self.keys
        roots = (keys.leases, keys.leased, keys.requests, self.lane.jobs_prefix)
        return self._call("release", roots, list(lease_ids), int)

    def delay(self, delays: Sequence[Delay], *, max_failures: int) -> Call[list[int]]:
        """Let failed pages wait. Answers per page 1 (delayed), 2 (failed too often: parked) or 0 (fenced)."""
        keys = self.keys
        roots = (keys.leases, keys.leased, keys.delayed, keys.stats, keys.dead, keys.dead_index)
        args: list[Arg] = [self.stage.name, max_failures]
        for page in delays:
            args += [page.lease_id, page.wait_ms, page.pause_ms, int(page.counts), page.reason, page.error]
        return self._call("delay", (*roots, self.lane.site, self.lane.jobs_prefix), args, list)

    def hold(self, pause_ms: int) -> Call[int]:
        """Leave the lane's site alone for `pause_ms`; answers until when (ms, Redis clock)."""
        return self._call("hold", (self.lane.site,), [pause_ms], int)

    def park(self, parks: Sequence[Park]) -> Call[list[int]]:
        """Make dead letters of pages. Answers per page 1, or 0 if fenced."""
        keys = self.keys
        roots = (keys.leases, keys.leased, keys.stats, keys.dead, keys.dead_index, self.lane.jobs_prefix)
        args: list[Arg] = [self.stage.name]
        for page in parks:
            args += [page.lease_id, page.reason, page.error]
        return self._call("park", roots, args, list)

    def replay(self, letter_ids: Sequence[str]) -> Call[int]:
        """Send dead letters back to work; answers how many."""
        keys = self.keys
        roots = (keys.dead, keys.dead_index, keys.requests, keys.stats, self.lane.jobs_prefix, keys.tasks)
        return self._call("replay", roots, [self.stage.name, *letter_ids], int)

    def drop(self, letter_ids: Sequence[str]) -> Call[int]:
        """Give dead letters up for good; answers how many."""
        keys = self.keys
        roots = (keys.dead, keys.dead_index, keys.stats, keys.runs, keys.seen, self.lane.jobs_prefix)
        return self._call("drop", roots, [self.stage.name, *letter_ids], int)

    def reclaim(self, *, max_deliveries: int, silence_ms: int, limit: int = 100) -> Call[tuple[int, int, int]]:
        """Take expired leases back. Answers (queued again, parked, workers forgotten)."""
        keys = self.keys
        roots = (keys.leases, keys.leased, keys.requests, keys.stats, keys.dead, keys.dead_index)
        others = (self.lane.jobs_prefix, keys.workers, keys.reports, keys.tasks, keys.express, keys.delayed)
        return self._call("reclaim", roots + others, [self.stage.name, GROUP, max_deliveries, silence_ms, limit], tuple)

    def report(self, worker: str, number: int, increments: dict[str, int]) -> Call[int]:
        """Say that a worker lives, and add what it counted since its last report (each number once)."""
        keys = self.keys
        args: list[Arg] = [worker, number]
        for name, by in increments.items():
            args += [name, by]
        return self._call("report", (keys.workers, keys.reports, keys.stats), args, int)

    def leave(self, worker: str) -> Call[int]:
        """Remove a worker's records when it stops in good order."""
        keys = self.keys
        return self._call("leave", (keys.workers, keys.reports, keys.tasks, keys.express), [worker, GROUP], int)

    def known(self, key: str) -> Call[Known | None]:
        """What the task filter remembers of a key."""
        return self._call("known", (self.keys.seen,), [self.task_filter.id_of(key)], _known)

    def _bytes_of(self, entry: Entry) -> bytes:
        """What a dead letter keeps of a task: JSON that a replay can read, or the bytes of what is no task."""
        if b"task" in entry.fields:
            return entry.raw
        try:
            return Task.from_fields(
                entry.fields, source=self.lane.source, stage=self.stage.name, entry_id=entry.id
            ).to_json()
        except TaskError:
            return entry.raw

    def _force(self, task: Task, forced: int = 1) -> int:
        """0, or `forced` if the task is to pass the filter; 1 if its stage does not remember its tasks."""
        stage = STAGES.get(task.stage, self.stage)
        return forced if task.force else int(not stage.remembers)

    def _task_id(self, task: Task) -> str:
        return self.task_filter.id_of(task.key)

    def _call(self, verb: str, keys: tuple[str, ...], args: list[Arg], read: Any) -> Call[Any]:
        return Call(self._scripts[verb], keys, tuple(args), read)


def _leased(reply: list[Any]) -> Leased:
    waiting, look_again_ms, state, concurrency, *leased = reply
    ids, records = leased[::2], leased[1::2]
    leases = [Lease(i.decode(), Record.salvaged(record)) for i, record in zip(ids, records, strict=True)]
    return Leased(leases, waiting, look_again_ms, state.decode(), concurrency or None)


def _committed(reply: list[int]) -> list[Committed]:
    return [Committed(bool(reply[at]), *reply[at + 1 : at + 4]) for at in range(0, len(reply), 4)]


def _known(reply: list[Any]) -> Known | None:
    if not reply:
        return None
    version, outcome, at_s = reply
    names = {b"d": "done", b"g": "gone"}
    return Known(version.decode("utf-8", "replace"), names.get(outcome.lower(), ""), at_s, outcome.isupper())


def _texts(reply: list[bytes]) -> list[str]:
    return [text.decode() for text in reply]
