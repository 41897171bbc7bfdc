"""What one Redis carries: the verbs of a whole crawl from several clients at once, and the item writer's share."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.child import ROOT
from bench.imagined import SOURCE
from bench.server_use import ServerUse
from bench.shard_client import LANE, Order, Said
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.submission import new_job_id
from threadmill.store.calls import run
from threadmill.store.connection import Client, connect
from threadmill.store.items import ItemStreams
from threadmill.store.stage import StageStore
from threadmill.store.status import Books, stage_books

CLIENTS = 3
_BOARDS = 200  # of 500 pages: far more than are ever scanned
_START_S = 20.0
_WRITER_PAGES = 300  # as the item writer's batch
_WRITTEN = 20_000
_OPTIONS = {
    "no": ("--appendonly", "no"),
    # A rewrite of the file in the middle would be measured by chance.
    "everysec": ("--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"),
    "always": ("--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"),
}


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One Redis, loaded by clients that download nothing.

    group: pages of a trip at most; pages_per_trip: in fact. fsync: `no` without an append-only file. busy: share of a
    core that Redis used. pages_per_core_s: pages for a second of Redis's CPU. disk_bytes_per_page: of the append-only
    file. writer_us_per_page: Redis's CPU for reading and settling a page's items. waiting_bytes_per_page: memory of a
    page's items until then.
    """

    group: int
    fsync: str
    pages: int
    pages_per_s: float
    busy: float
    redis_us_per_page: float
    pages_per_core_s: float
    pages_per_trip: float
    items_per_page: float
    bytes_in_per_page: float
    bytes_out_per_page: float
    disk_bytes_per_page: float
    writer_us_per_page: float
    waiting_bytes_per_page: float


def shard_run(group: int, fsync: str, warm_up_s: float, seconds: float) -> ShardRun:
    """Loads a new Redis and measures `seconds` of it; raises `RuntimeError` if the books do not balance afterwards."""
    with _redis(fsync) as (url, client):
        _submit_boards(client)
        with _clients(Order(url, group, warm_up_s + seconds + 0.5)) as said:
            _until_begun(client)
            time.sleep(warm_up_s)
            begin, items, before = _books(client), _items(client), ServerUse.of(client)
            size = _file_size(client)
            time.sleep(seconds)
            used = ServerUse.of(client) - before
            pages, items, size = _books(client).done - begin.done, _items(client) - items, _file_size(client) - size
        books = _books(client)
        if not books.balanced or books.leased:
            raise RuntimeError(f"the books do not balance: {books}")
        writer_us, waiting_bytes = _write_items(client)
    result = ShardRun(
        group,
        fsync,
        pages,
        pages / used.wall_s,
        used.busy,
        used.cpu_us / pages,
        1e6 * pages / used.cpu_us,
        sum(one.pages for one in said) / sum(one.trips for one in said),
        items / pages,
        used.bytes_in / pages,
        used.bytes_out / pages,
        size / pages,
        writer_us,
        waiting_bytes,
    )
    print(result, file=sys.stderr, flush=True)
    return result


@contextmanager
def _redis(fsync: str) -> Iterator[tuple[str, Client]]:
    options = (*_OPTIONS[fsync], "--loglevel", "warning")
    with (
        tempfile.TemporaryDirectory(prefix="threadmill-bench-redis-") as folder,
        EmbeddedRedis(Path(folder), options=options) as server,
        connect(server.url) as client,
    ):
        yield server.url, client


@contextmanager
def _clients(order: Order) -> Iterator[list[Said]]:
    """Clients at work; what they said is in the list after the block."""
    command = [sys.executable, "-m", "bench.shard_client", json.dumps(asdict(order))]
    said: list[Said] = []
    with ExitStack() as stack:
        processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)]
        for process in processes:
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield said
        for process in processes:
            output, _ = process.communicate(timeout=order.seconds + 30)
            if process.returncode:
                raise RuntimeError(f"a client ended with code {process.returncode}")
            said.append(Said(**json.loads(output)))


def _submit_boards(client: Client) -> None:
    tasks = [Task(LIST.name, SOURCE, str(board)) for board in range(1, _BOARDS + 1)]
    run(client, StageStore(LANE, LIST).submit(tasks, token="bench", job=new_job_id()))


def _until_begun(client: Client) -> None:
    deadline = time.monotonic() + _START_S
    while not _books(client).done:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no client began within {_START_S:.0f} s")
        time.sleep(0.01)


def _books(client: Client) -> Books:
    """Of all stages together."""
    return sum(stage_books(client, [LANE]).values(), Books())


def _items(client: Client) -> int:
    return int(client.hget(LANE.items_stats, "committed") or 0)


def _file_size(client: Client) -> int:
    return int(client.info("persistence").get("aof_current_size", 0))


def _write_items(client: Client) -> tuple[float, float]:
    """Takes pages' items as the item writer does; µs of Redis and bytes of memory for each page."""
    streams = ItemStreams(client, [LANE], "sql", "bench")
    streams.ensure_groups()
    memory, before = client.info("memory")["used_memory"], ServerUse.of(client)
    pages = 0
    while pages < _WRITTEN and (entries := streams.read(_WRITER_PAGES)):
        # A count for each entry; how many items there are in it costs Redis nothing.
        streams.settle([(entry, 1) for entry in entries])
        pages += len(entries)
    used = ServerUse.of(client) - before
    return used.cpu_us / pages, (memory - client.info("memory")["used_memory"]) / pages
