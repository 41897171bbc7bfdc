"""Every Redis key Threadmill uses is spelt here, and nowhere else. docs/redis-keys.md explains them.

Keys are per lane: a source and one of its partitions. The hash tag is the lane, so that all keys of a lane live
in one Redis Cluster slot and a page's commit is a single-slot transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

GROUP = "workers"
"""The consumer group of every task stream."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A source's partition, the unit of placement: everything in it shares one hash slot."""

    source: str
    partition: int = 0
    namespace: str = ""

    @property
    def prefix(self) -> str:
        tag = f"{{{self.source}.{self.partition}}}"
        return f"{self.namespace}:{tag}" if self.namespace else tag

    def stage(self, name: str) -> StageKeys:
        return StageKeys(f"{self.prefix}:{name}")

    @property
    def items(self) -> str:
        """stream: what was collected, one entry a page; one group per store."""
        return f"{self.prefix}:items"

    @property
    def items_stats(self) -> str:
        """hash: items committed, and settled by each group."""
        return f"{self.prefix}:items:stats"

    @property
    def items_dead(self) -> str:
        """stream: items no store could take, with the reason."""
        return f"{self.prefix}:items:dead"

    @property
    def site(self) -> str:
        """hash: the site's shared politeness: next free slot, paused until."""
        return f"{self.prefix}:site"

    @property
    def jobs(self) -> str:
        """zset: job id → when it began (ms)."""
        return f"{self.prefix}:jobs"

    @property
    def jobs_prefix(self) -> str:
        """Where a script appends a job's id, which it reads from the work itself."""
        return f"{self.jobs}:"

    def job(self, job_id: str) -> str:
        """hash: a job's books: open, and accepted, done, dead per stage."""
        return f"{self.jobs_prefix}{job_id}"

    @property
    def events(self) -> str:
        """stream: jobs that were finished, posts that are complete. No job may be called `events`."""
        return f"{self.jobs_prefix}events"

    @property
    def boards(self) -> str:
        """hash: board → how and when it is scanned, and what came of it, as JSON."""
        return f"{self.prefix}:boards"

    @property
    def schedule(self) -> str:
        """zset: board → when its next scan is due (ms)."""
        return f"{self.prefix}:schedule"

    @property
    def looks(self) -> str:
        """zset: the priorities that boards on the schedule have."""
        return f"{self.schedule}:looks"

    def looks_of(self, priority: int) -> str:
        """zset: board of this priority → when a dispatcher looks at it next (ms)."""
        return f"{self.looks}:{priority}"

    @property
    def schedule_stats(self) -> str:
        """hash: what the dispatchers counted."""
        return f"{self.prefix}:schedule:stats"

    @property
    def dispatchers(self) -> str:
        """zset: dispatcher id → last sign of life (ms)."""
        return f"{self.prefix}:dispatchers"


@dataclass(frozen=True, slots=True)
class StageKeys:
    """The keys of one stage in one lane; `base` is `{bbs.0}:detail`."""

    base: str

    @property
    def tasks(self) -> str:
        """stream, group `workers`: the task key, what others ask of the stage."""
        return f"{self.base}:tasks"

    @property
    def express(self) -> str:
        """stream, group `workers`: the same, read first."""
        return f"{self.base}:tasks:express"

    @property
    def requests(self) -> str:
        """zset: requests waiting; score from the queue order, member = sequence + record."""
        return f"{self.base}:requests"

    @property
    def delayed(self) -> str:
        """zset: requests not to be tried before their due time (ms)."""
        return f"{self.base}:delayed"

    @property
    def leases(self) -> str:
        """zset: lease id → expiry (ms, Redis clock)."""
        return f"{self.base}:leases"

    @property
    def leased(self) -> str:
        """hash: lease id → the leased member."""
        return f"{self.base}:leased"

    @property
    def runs(self) -> str:
        """hash: run → open requests, for runs that have more than one."""
        return f"{self.base}:runs"

    @property
    def seen(self) -> str:
        """The root of the dupefilter's keys."""
        return f"{self.base}:seen"

    def seen_part(self, part: str | int) -> str:
        return f"{self.base}:seen:{part}"

    @property
    def dead(self) -> str:
        """hash: dead letter id → the letter."""
        return f"{self.base}:dead"

    @property
    def dead_index(self) -> str:
        """zset: dead letter id by time (ms)."""
        return f"{self.base}:dead:index"

    @property
    def stats(self) -> str:
        """hash: counters, HINCRBY only."""
        return f"{self.base}:stats"

    @property
    def workers(self) -> str:
        """zset: worker id → last heartbeat (ms)."""
        return f"{self.base}:workers"

    @property
    def reports(self) -> str:
        """hash: worker id → number of its last report; `…:lease`, of its last lease; `…:since`, when it came."""
        return f"{self.base}:workers:reports"

    @property
    def control(self) -> str:
        """hash: what operators said (paused, draining, rate, concurrency, replicas), and what it waits for (held)."""
        return f"{self.base}:control"

    @property
    def met(self) -> str:
        """The root of the sets of posts that boards listed: `b:<board>`, and `r:<run>` for a whole scan under way."""
        return f"{self.base}:met"


def partition_of(key: str, partitions: int) -> int:
    """The partition of a root task: a stable hash of its key, the same in every process and release."""
    return crc32(key.encode()) % partitions if partitions > 1 else 0
