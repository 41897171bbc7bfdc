"""What the tests of the verbs stand on: one stage of one lane on a real Redis, in few words."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import redis

from store.census import audit
from threadmill.model.keys import Lane
from threadmill.model.stages import DETAIL, Stage
from threadmill.model.task import Task
from threadmill.store.calls import Call, run
from threadmill.store.stage import StageStore
from threadmill.store.status import Books, JobBooks, job_books, run_books
from threadmill.store.streams import TaskStreams
from threadmill.store.work import Admission, Child, Committed, Entry, Lease, Leased, PageCommit

LONG_MS = 60_000
EXPIRED_MS = 0
"""A lease of this length is over as soon as it is given."""


class Workshop:
    """A stage, its verbs run at once, and its books."""

    def __init__(self, client: redis.Redis, stage: Stage = DETAIL, **strategies: Any) -> None:
        self.client = client
        self.lane = Lane("bbs")
        self.store = StageStore(self.lane, stage, **strategies)
        self.keys = self.store.keys
        self._numbers = itertools.count(1)

    def run(self, call: Call[Any]) -> Any:
        return run(self.client, call)

    def task(self, key: str, **fields: Any) -> Task:
        return Task(stage=self.store.stage.name, source=self.lane.source, key=key, **fields)

    def submit(
        self, *keys: str, token: str = "", job: str = "", express: bool = False, **fields: Any
    ) -> tuple[int, int]:
        tasks = [self.task(key, **fields) for key in keys]
        call = self.store.submit(tasks, token=token or f"token{next(self._numbers)}", job=job, express=express)
        return tuple(self.run(call))

    def push(self, body: object, *, express: bool = False) -> bytes:
        """Push a task from outside, as `XADD … task <json>`."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.client.xadd(self.keys.express if express else self.keys.tasks, {"task": data})

    def streams(self, worker: str = "w1") -> TaskStreams:
        streams = TaskStreams(self.client, self.keys, worker)
        streams.ensure_groups()
        return streams

    def read(self, worker: str = "w1", count: int = 100) -> list[Entry]:
        return self.streams(worker).read(count)

    def admit(self, entry: Entry, *payloads: bytes, priority: int = 0) -> int:
        task = Task.from_fields(entry.fields, source="bbs", stage=self.store.stage.name, entry_id=entry.id)
        admission = Admission(entry, task.job, [(priority, payload) for payload in payloads])
        return self.run(self.store.admit([admission], express=entry.express))[0]

    def start(self, key: str, *payloads: bytes, job: str = "") -> Entry:
        """Submit a task and admit it: its root requests wait in the queue."""
        self.submit(key, job=job, force=True)
        (entry,) = self.read()
        assert self.admit(entry, *payloads) == 1
        return entry

    def queue(self, *payloads: bytes, priority: int = 0, job: str = "") -> int:
        """Queue requests that no task asked for."""
        roots = [Child(payload, "", priority) for payload in payloads]
        return self.run(self.store.enqueue(roots, token=f"enqueue{next(self._numbers)}", job=job))

    def lease(self, want: int = 1, **how: Any) -> list[Lease]:
        return self.ask(want, **how).leases

    def ask(self, want: int = 1, *, ttl_ms: int = LONG_MS, token: str = "", **how: Any) -> Leased:
        """The whole answer of a lease call."""
        token = token or f"lease{next(self._numbers)}"
        return self.run(self.store.lease(want, worker=token, number=1, ttl_ms=ttl_ms, **how))

    def lease_one(self, *, ttl_ms: int = LONG_MS) -> Lease:
        (lease,) = self.lease(1, ttl_ms=ttl_ms)
        return lease

    def commit(self, lease: Lease, **caused: Any) -> Committed:
        return self.run(self.store.commit([PageCommit(lease.id, **caused)]))[0]

    def reclaim(self, *, max_deliveries: int = 5, silence_ms: int = LONG_MS, limit: int = 100) -> tuple[int, int, int]:
        call = self.store.reclaim(max_deliveries=max_deliveries, silence_ms=silence_ms, limit=limit)
        return tuple(self.run(call))

    @property
    def books(self) -> Books:
        return run_books(self.client, self.lane, self.store.stage.name)

    def job(self, job: str) -> JobBooks:
        return job_books(self.client, [self.lane], job)

    def stat(self, name: str) -> int:
        return int(self.client.hget(self.keys.stats, name) or 0)

    def letters(self) -> list[str]:
        return [letter.decode() for letter in self.client.zrange(self.keys.dead_index, 0, -1)]

    def everything(self) -> dict[bytes, bytes]:
        """Every key with its value, to see that nothing has changed."""
        return {key: self.client.dump(key) for key in self.client.keys("*")}

    def audit(self) -> None:
        books = [key.decode() for key in self.client.keys(f"{self.lane.jobs_prefix}*")]
        audit(self.client, self.lane, [key.rpartition(":")[2] for key in books if key != self.lane.events])


def payloads(leases: list[Lease]) -> list[bytes]:
    return [lease.record.payload for lease in leases]
