"""A client that says to Redis what workers of all three stages say, without the pages between.

`python -m bench.shard_client ORDER`, the `Order` as JSON, prints `Said` as JSON at its end.
"""

import itertools
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from bench.child import ROOT
from bench.imagined import SOURCE, Imagined, root
from threadmill.model.keys import Lane
from threadmill.model.stages import COMMENT, DETAIL, LIST, Stage
from threadmill.model.task import Task
from threadmill.store.calls import Call, Command, run_all
from threadmill.store.connection import Client, connect
from threadmill.store.stage import StageStore
from threadmill.store.streams import TaskStreams
from threadmill.store.work import Admission, Entry, PageCommit

LANE = Lane(SOURCE)
_LEASE_TTL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Order:
    """redis_url; group: pages of a trip at most; seconds to go on; pause_s between trips."""

    redis_url: str
    group: int
    seconds: float
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """Round trips that carried commits, pages in them, CPU of the client in s."""

    trips: int
    pages: int
    cpu_s: float


class Hand:
    """One worker of one stage: leases, commits what it leased before, admits when the queue runs dry."""

    def __init__(self, client: Client, stage: Stage, group: int, imagined: Imagined) -> None:
        worker = f"bench-{os.getpid()}-{stage.name}"
        self._client = client
        self._store = StageStore(LANE, stage)
        self._streams = TaskStreams(client, self._store.keys, worker)
        self._streams.ensure_groups()
        self._worker = worker
        self._group = group
        self._imagined = imagined
        self._numbers = itertools.count(1)
        self._done: list[PageCommit] = []
        self._admissions: list[Admission] = []
        self._hungry = True
        self.trips = self.pages = 0

    def trip(self, *, last: bool = False) -> int:
        """One round trip, in the order a worker's has; answers how many pages were leased. The last leases nothing."""
        commit = [self._store.commit(self._done)] if self._done else []
        admit = [self._store.admit(self._admissions, express=False)] if self._admissions else []
        want: list[Call[Any] | Command[Any]] = []
        if not last:
            number = next(self._numbers)
            want = [self._store.lease(self._group, worker=self._worker, number=number, ttl_ms=_LEASE_TTL_MS)]
            if self._hungry:
                want.append(self._streams.reading(self._group))
        answers = run_all(self._client, [*commit, *admit, *want])
        if commit:
            self.trips += 1
            self.pages += len(self._done)
            if not all(page.ok for page in answers[0]):
                raise RuntimeError("a page was fenced, though nobody else had it")
        self._done, self._admissions = [], []
        if last:
            return 0
        leased, *read = answers[len(commit) + len(admit) :]
        # As the feed of a worker: tasks are read from when the queue ran dry until there are no more.
        if read:
            self._admit(read[0])
            self._hungry = len(read[0]) == self._group
        if len(leased.leases) < self._group:
            self._hungry = self._hungry or leased.waiting == 0
        stage = self._store.stage.name
        self._done = [self._imagined.commit(stage, lease) for lease in leased.leases]
        return len(leased.leases)

    def _admit(self, entries: list[Entry]) -> None:
        for entry in entries:
            task = Task.from_fields(entry.fields, source=SOURCE, stage=self._store.stage.name, entry_id=entry.id)
            self._admissions.append(Admission(entry, task.job, [(0, root(task))]))


def work(order: Order) -> Said:
    """Goes on until the time is over; raises `RuntimeError` if the work is over before."""
    imagined = Imagined.from_source(ROOT / "sources" / "bbs.toml")
    with connect(order.redis_url) as client:
        hands = [Hand(client, stage, order.group, imagined) for stage in (COMMENT, DETAIL, LIST)]
        until = time.monotonic() + order.seconds
        idle = 0
        while time.monotonic() < until:
            # The last stage first: so the stages keep the shares that a steady crawl has.
            leased = 0
            for hand in hands:
                time.sleep(order.pause_s)
                leased = hand.trip()
                if leased == order.group:
                    break
            idle = 0 if leased else idle + 1
            if idle > 1000:
                raise RuntimeError("there was nothing left to do: submit more boards")
        for hand in hands:
            hand.trip(last=True)
    return Said(sum(hand.trips for hand in hands), sum(hand.pages for hand in hands), time.process_time())


if __name__ == "__main__":
    print(json.dumps(asdict(work(Order(**json.loads(sys.argv[1]))))))
