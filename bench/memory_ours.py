"""What Threadmill keeps in Redis, put there by its own verbs, as its services use them."""

import itertools
import secrets
from collections.abc import Callable, Iterator

import orjson
from redis import Redis

from bench.callbacks import Item
from bench.filling import FIRST_POST
from threadmill.crawl.reference import PageReference
from threadmill.model.keys import Lane
from threadmill.model.stages import DETAIL, LIST
from threadmill.model.task import Task
from threadmill.ops.submission import new_job_id
from threadmill.store.calls import run, run_all
from threadmill.store.filters import NoFilter
from threadmill.store.stage import StageStore
from threadmill.store.streams import TaskStreams
from threadmill.store.work import Admission, Child, PageCommit, Park

LANE = Lane("bbs")
BOARD = "17"
VERSION = "2026-01-02T03:04:05Z|12"
"""As sources/bbs.toml has it: time of the last reply, number of comments."""
_BATCH = 500
_POSTS_PER_PAGE = 20
_LONG_MS = 3_600_000

# The tasks' own memory is wanted; what the filter remembers has rows of its own.
_list = StageStore(LANE, LIST, task_filter=NoFilter())
_detail = StageStore(LANE, DETAIL)
_numbers = itertools.count(1)


def tasks(client: Redis, count: int) -> None:
    """Posts waiting to be collected, handed down by list pages."""
    _hand_down(client, _list, count, VERSION)


def remember_older(client: Redis, count: int) -> None:
    """The posts are known, and were done with fewer comments."""
    older = VERSION.replace("04:05Z|12", "03:04Z|11")
    for keys in _batches(count):
        known = [Task(DETAIL.name, LANE.source, key, version=older) for key in keys]
        run(client, _detail.submit(known, token=secrets.token_hex(8)))
        _admit_all(client)
        leases = itertools.chain.from_iterable(_lease_all(client))
        run(client, _detail.commit([PageCommit(lease_id, key=key) for lease_id, key in zip(leases, keys, strict=True)]))


def moved_tasks(client: Redis, count: int) -> None:
    """The same for posts that were done and got a comment: each task has the version before and the version now."""
    _hand_down(client, StageStore(LANE, LIST), count, VERSION)


def requests(client: Redis, count: int) -> None:
    """Those tasks, admitted: each is one request."""
    for keys in _batches(count):
        tasks(client, len(keys))
        _admit_all(client)


def leased(client: Redis, count: int) -> None:
    """Those requests, leased."""
    requests(client, count)
    _lease_all(client)


def letters(client: Redis, count: int) -> None:
    """Those pages, given up."""
    requests(client, count)
    for ids in _lease_all(client):
        error = "HttpError: the site answered 500 to http://127.0.0.1:8000/BBS/post/4000000"
        run(client, _detail.park([Park(lease_id, "http-500", error) for lease_id in ids]))


def items_of(pages: Callable[[], Iterator[list[Item]]]) -> Callable[[Redis, int], None]:
    """A filling: the items of committed pages, one entry of the item stream a page."""

    def fill(client: Redis, count: int) -> None:
        left = count
        supply = pages()
        while left > 0:
            bundle = [page[:left] for page in itertools.islice(supply, 64)]
            roots = [Child(b'{"k":"1"}', "") for _ in bundle]
            run(client, _detail.enqueue(roots, token=secrets.token_hex(8)))
            (ids,) = _lease_all(client)
            commits = []
            for lease_id, items in zip(ids, bundle, strict=True):
                commits.append(PageCommit(lease_id, items=[orjson.dumps(item) for item in items[:left]]))
                left -= len(commits[-1].items)
            run(client, _detail.commit(commits))

    return fill


def _hand_down(client: Redis, store: StageStore, count: int, version: str) -> None:
    """List pages are queued, leased and committed with their posts."""
    job = new_job_id()
    for keys in _batches(count):
        pages = [keys[at : at + _POSTS_PER_PAGE] for at in range(0, len(keys), _POSTS_PER_PAGE)]
        roots = [Child(b'{"k":"17"}', "") for _ in pages]
        run(client, store.enqueue(roots, token=secrets.token_hex(8), job=job))
        lease = store.lease(len(pages), worker="bench", number=next(_numbers), ttl_ms=_LONG_MS)
        commits = [
            PageCommit(
                lease.id,
                subtasks=[Task(DETAIL.name, LANE.source, key, parent=BOARD, depth=1, version=version) for key in posts],
            )
            for lease, posts in zip(run(client, lease).leases, pages, strict=True)
        ]
        run(client, store.commit(commits))


def _admit_all(client: Redis) -> None:
    """Admit the tasks that wait, up to a batch of them."""
    streams = TaskStreams(client, _detail.keys, "bench")
    streams.ensure_groups()
    admissions = []
    for entry in streams.read(_BATCH):
        task = Task.from_fields(entry.fields, source=LANE.source, stage=DETAIL.name, entry_id=entry.id)
        admissions.append(Admission(entry, task.job, [(task.priority, PageReference.of(task, 1).dump())]))
    run(client, _detail.admit(admissions, express=False))


def _lease_all(client: Redis) -> list[list[str]]:
    """Lease what waits, a hundred a call as a worker would; the lease ids of each call."""
    worker = "a1b2c3d4e5f6-31337-beef"
    calls: list[list[str]] = []
    while True:
        call = _detail.lease(100, worker=worker, number=next(_numbers), ttl_ms=_LONG_MS)
        if not (leases := run_all(client, [call])[0].leases):
            return calls
        calls.append([lease.id for lease in leases])


def _batches(count: int) -> Iterator[list[str]]:
    for at in range(0, count, _BATCH):
        yield [str(FIRST_POST + n) for n in range(at, min(at + _BATCH, count))]
