"""What an item writer takes off a Redis, and what it asks of it: the service itself, writing to SQLite."""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.child import ROOT
from bench.server_use import ServerUse
from bench.shard_client import LANE
from bench.shard_load import ShardLoad, shard_load
from threadmill.ops.fleet import Fleet

_GROUP = 64  # fills the stream fastest
_START_S = 20.0


@dataclass(frozen=True, slots=True)
class WriterRun:
    """One item writer with a backlog. waiting_bytes_per_page: Redis's memory for a page's items until it has them."""

    pages: int
    pages_per_s: float
    items_per_s: float
    redis_us_per_page: float
    bytes_per_page: float
    waiting_bytes_per_page: float


def writer_run(clients: int, fill_s: float, seconds: float) -> WriterRun:
    """Fills the item stream for `fill_s`, then has it written for `seconds`, or until it is empty."""
    with shard_load("no", clients) as load, tempfile.TemporaryDirectory(prefix="threadmill-bench-") as name:
        with load.clients(_GROUP, fill_s):
            pass
        folder = Path(name)
        environment = {
            "THREADMILL_REDIS_URL": load.url,
            "THREADMILL_SOURCES": str(ROOT / "sources" / "bbs.toml"),
            "THREADMILL_STORE_URL": f"sqlite:///{folder / 'rows.db'}",
            "THREADMILL_LOG_LEVEL": "WARNING",
        }
        fleet = Fleet(environment, folder)
        try:
            fleet.scale("item_writer", 1)
            run = _measured(load, fleet, seconds)
        finally:
            fleet.stop()
    print(run, file=sys.stderr, flush=True)
    return run


def _measured(load: ShardLoad, fleet: Fleet, seconds: float) -> WriterRun:
    client = load.client
    deadline = time.monotonic() + _START_S
    while not (settled := _settled(load)):
        if (deaths := fleet.tend()) or time.monotonic() > deadline:
            raise RuntimeError(f"the item writer did not begin: {'; '.join(deaths)}")
        time.sleep(0.01)
    waiting, memory, before = client.xlen(LANE.items), client.info("memory")["used_memory"], ServerUse.of(client)
    until = time.monotonic() + seconds
    while time.monotonic() < until and client.xlen(LANE.items):
        time.sleep(0.1)
    used = ServerUse.of(client) - before
    settled, pages = _settled(load) - settled, waiting - client.xlen(LANE.items)
    freed = memory - client.info("memory")["used_memory"]
    return WriterRun(
        pages, pages / used.wall_s, settled / used.wall_s, used.cpu_us / pages, used.bytes_out / pages, freed / pages
    )


def _settled(load: ShardLoad) -> int:
    return int(load.client.hget(LANE.items_stats, "settled:sql") or 0)
