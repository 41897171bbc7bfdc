"""What one Redis carries: the verbs of a whole crawl from several clients at once."""

import sys
import time
from dataclasses import dataclass

from bench.server_use import ServerUse
from bench.shard_load import shard_load


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One Redis, loaded by clients that download nothing.

    group: pages of a trip at most; pages_per_trip: in fact. fsync: `no` without an append-only file. busy: share of a
    core that Redis used. pages_per_core_s: pages for a second of Redis's CPU. disk_bytes_per_page: of the append-only
    file.
    """

    group: int
    fsync: str
    pause_s: float
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


def shard_run(clients: int, group: int, fsync: str, warm_up_s: float, seconds: float, pause_s: float = 0.0) -> ShardRun:
    """Loads a new Redis and measures `seconds` of it; its clients wait `pause_s` before each trip."""
    with shard_load(fsync, clients) as load, load.clients(group, warm_up_s + seconds + 0.5, pause_s) as said:
        time.sleep(warm_up_s)
        done, items, size = load.books.done, load.items, load.file_bytes
        before = ServerUse.of(load.client)
        time.sleep(seconds)
        used = ServerUse.of(load.client) - before
        pages, items, size = load.books.done - done, load.items - items, load.file_bytes - size
    result = ShardRun(
        group=group,
        fsync=fsync,
        pause_s=pause_s,
        pages=pages,
        pages_per_s=pages / used.wall_s,
        busy=used.busy,
        redis_us_per_page=used.cpu_us / pages,
        pages_per_core_s=1e6 * pages / used.cpu_us,
        pages_per_trip=sum(one.pages for one in said) / sum(one.trips for one in said),
        items_per_page=items / pages,
        bytes_in_per_page=used.bytes_in / pages,
        bytes_out_per_page=used.bytes_out / pages,
        disk_bytes_per_page=size / pages,
    )
    print(result, file=sys.stderr, flush=True)
    return result
