"""What growth is measured on: servers that hold so many requests or remember so many ids, and what is asked of them."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import orjson
from redis import Redis

from bench.callbacks import parse_comments
from bench.filling import FIRST_POST, queue_requests, remember_fingerprints, remember_versions
from bench.memory_ours import VERSION
from bench.pages import comment_pages, render
from bench.progress import say
from bench.redis_server import redis_server
from threadmill.crawl.reference import PageReference
from threadmill.model.keys import Lane
from threadmill.model.stages import COMMENT, DETAIL, LIST
from threadmill.model.task import Task
from threadmill.ops.submission import new_job_id
from threadmill.store.calls import Call, run
from threadmill.store.connection import connect
from threadmill.store.filters import REQUEST_FILTERS, VersionedFilter, fingerprint, see
from threadmill.store.stage import StageStore
from threadmill.store.work import Child, Lease, Leased, PageCommit

LANE = Lane("bbs")
PAGES, POSTS = 64, 20
"""Pages a lease or commit call carries: a full trip. Posts of a list page."""
IDS = 250
"""Tasks or ids of one call."""
FILTERS = {name: REQUEST_FILTERS[name] for name in ("exact", "set", "bloom", "window")}
"""`run` is `set` for one run."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one page, task or id, in µs."""

    cpu: float
    script: float
    wall: float


class Subject:
    """A server of one size, and what can be done to it."""

    def __init__(self, stack: ExitStack, count: int) -> None:
        port = stack.enter_context(redis_server())
        self.redis = stack.enter_context(connect(f"redis://127.0.0.1:{port}/0"))
        self._filler = stack.enter_context(Redis(port=port, socket_timeout=60))
        started = time.perf_counter()
        self.fill(self._filler, count)
        say(f"{count:,} filled in {time.perf_counter() - started:.1f} s")

    def fill(self, redis: Redis, count: int) -> None:
        raise NotImplementedError

    def holds(self, what: str) -> bool:
        """Whether there is so much of this."""
        return True

    def measure(self, what: str, calls: int) -> Cost:
        raise NotImplementedError

    def cost(self, calls: Sequence[Call[Any]], each: int, heard: Callable[[Any], None] = lambda _: None) -> Cost:
        """Of `calls` together, per element, of which each has so many."""
        before = self._counters()
        started = time.perf_counter()
        answers = [run(self.redis, call) for call in calls]
        wall = time.perf_counter() - started
        after = self._counters()
        for answer in answers:
            heard(answer)
        n = each * len(calls)
        return Cost((after[0] - before[0]) / n, (after[1] - before[1]) / n, wall * 1e6 / n)

    def _counters(self) -> tuple[float, float]:
        cpu = self.redis.info("cpu")
        scripts = self.redis.info("commandstats").get("cmdstat_evalsha", {"usec": 0})
        return (cpu["used_cpu_user"] + cpu["used_cpu_sys"]) * 1e6, scripts["usec"]


class Backlog(Subject):
    """`count` requests wait in the comment stage, and `count` posts are known to the detail stage."""

    _list, _detail, _comment = (StageStore(LANE, stage) for stage in (LIST, DETAIL, COMMENT))

    def fill(self, redis: Redis, count: int) -> None:
        self._job = new_job_id()
        self._numbers = itertools.count(1)
        self._posts = itertools.count(FIRST_POST * 5)
        self._items = itertools.cycle(list(itertools.islice(_items(), 200)))
        self._leases: list[Lease] = []
        queue_requests(redis, self._comment.keys, self._job, count)
        remember_versions(redis, VersionedFilter(), self._detail.keys.seen, count, VERSION)

    def measure(self, what: str, calls: int) -> Cost:
        if what == "lease":
            return self.cost([self._lease(self._comment, PAGES) for _ in range(calls)], PAGES, self._keep)
        if what == "commit":
            return self._commit()
        if what == "submit":
            tasks = [self._tasks(IDS) for _ in range(2)]
            return self.cost([self._detail.submit(some, token=some[0].key, job=self._job) for some in tasks], IDS)
        pages = [self._list_pages(4) for _ in range(2)]
        return self.cost([self._list.commit(some) for some in pages], 4)

    def _lease(self, store: StageStore, want: int) -> Call[Leased]:
        return store.lease(want, worker="a1b2c3d4e5f6-31337-beef", number=next(self._numbers), ttl_ms=3_600_000)

    def _keep(self, leased: Leased) -> None:
        self._leases += leased.leases

    def _commit(self) -> Cost:
        """What was leased, each page with its items and the page that follows: the queue is as long as before."""
        calls = []
        for at in range(0, len(self._leases), PAGES):
            pages = []
            for lease in self._leases[at : at + PAGES]:
                reference = PageReference.load(lease.record.payload, LANE.source)
                following = reference.following(reference.number + 1, {})
                child = Child(following.dump(), fingerprint(f"{following.key}\n{following.number}"))
                own = fingerprint(f"{reference.key}\n{reference.number}")
                pages.append(PageCommit(lease.id, own, children=[child], items=next(self._items)))
            calls.append(self._comment.commit(pages))
        self._leases = []
        cost = self.cost(calls, PAGES)
        self.redis.xtrim(LANE.items, 0, approximate=False)
        return cost

    def _list_pages(self, count: int) -> list[PageCommit]:
        """Leased list pages, half of whose posts are known."""
        roots = [Child(b'{"k":"17"}', "") for _ in range(count)]
        run(self.redis, self._list.enqueue(roots, token=f"list{next(self._numbers)}", job=self._job))
        leases = run(self.redis, self._lease(self._list, count)).leases
        return [PageCommit(lease.id, subtasks=self._tasks(POSTS)) for lease in leases]

    def _tasks(self, count: int) -> list[Task]:
        """Half of them known, half new."""
        new = [str(next(self._posts)) for _ in range(count - count // 2)]
        keys = new + [str(FIRST_POST + int(key) * 7919 % 1_000) for key in new[: count // 2]]
        return [Task(DETAIL.name, LANE.source, key, parent="17", depth=1, version=VERSION) for key in keys]


class Memory(Subject):
    """Dupefilters, each of which has seen `count` ids."""

    def fill(self, redis: Redis, count: int) -> None:
        self._numbers = itertools.count(1)
        self._count = count
        for name, dupefilter in FILTERS.items():
            self._ask(name, range(-IDS, 0))
            if self.holds(name):
                remember_fingerprints(redis, dupefilter, _root(name), count)
        remember_versions(redis, VersionedFilter(), _root("versioned"), count, VERSION)

    def holds(self, what: str) -> bool:
        """The window forgets beyond a million; to fill a Bloom filter with more takes minutes."""
        return what not in ("bloom", "window") or self._count <= 1_000_000

    def measure(self, what: str, calls: int) -> Cost:
        asked = []
        for _ in range(calls):
            new = [next(self._numbers) for _ in range(IDS // 2)]
            known = (
                [-1 - number % IDS for number in new] if what != "versioned" else [FIRST_POST + n % 999 for n in new]
            )
            asked.append(self._see(what, new + known))
        return self.cost(asked, IDS)

    def _ask(self, name: str, ids: Sequence[int]) -> None:
        run(self.redis, self._see(name, ids))

    def _see(self, name: str, ids: Sequence[int]) -> Call[Any]:
        dupefilter = FILTERS.get(name) or VersionedFilter()
        return see(dupefilter, _root(name), [(str(n), VERSION) for n in ids], "1")


def _root(name: str) -> str:
    return f"{{bbs.0}}:{name}:seen"


def _items() -> Iterator[list[bytes]]:
    """The items of comment pages."""
    for post in itertools.count(FIRST_POST):
        for number in range(1, comment_pages(post) + 1):
            if body := render(f"/BBS/comment/{post}/{number}".encode()):
                yield [orjson.dumps(item) for item in parse_comments(body).items]
