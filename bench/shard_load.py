"""A Redis of its own and clients that load it, as the workers of a whole crawl would."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from bench.child import ROOT
from bench.imagined import SOURCE
from bench.shard_client import LANE, Order, Said
from threadmill.model.stages import LIST
from threadmill.model.task import Task
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.submission import new_job_id
from threadmill.store.calls import run
from threadmill.store.connection import Client, connect
from threadmill.store.stage import StageStore
from threadmill.store.status import Books, stage_books

FSYNC = {
    "no": ("--appendonly", "no"),
    # A rewrite of the file in the middle would be measured by chance.
    "everysec": ("--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"),
    "always": ("--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"),
}
"""Redis's options for `appendfsync`; `no` is without an append-only file."""
_BOARDS = 200  # of 500 pages: far more than are ever scanned
_START_S = 20.0


class ShardLoad:
    """A Redis at `url`, and what it holds. `client` is ours."""

    def __init__(self, url: str, client: Client, clients: int) -> None:
        self.url = url
        self.client = client
        self._clients = clients
        boards = [Task(LIST.name, SOURCE, str(board)) for board in range(1, _BOARDS + 1)]
        run(client, StageStore(LANE, LIST).submit(boards, token="bench", job=new_job_id()))

    @property
    def books(self) -> Books:
        """Of all stages together."""
        return sum(stage_books(self.client, [LANE]).values(), Books())

    @property
    def items(self) -> int:
        """Items committed so far."""
        return int(self.client.hget(LANE.items_stats, "committed") or 0)

    @property
    def file_bytes(self) -> int:
        """Size of the append-only file; 0 without one."""
        return int(self.client.info("persistence").get("aof_current_size", 0))

    @contextmanager
    def clients(self, group: int, seconds: float, pause_s: float = 0.0) -> Iterator[list[Said]]:
        """Clients at work for so long, at least one by now; what they said is in the list after the block.

        Raises `RuntimeError` if one fails, or the books do not balance when all have ended.
        """
        order = Order(self.url, group, seconds, pause_s)
        command = [sys.executable, "-m", "bench.shard_client", json.dumps(asdict(order))]
        said: list[Said] = []
        with ExitStack() as stack:
            processes = [
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(self._clients)
            ]
            for process in processes:
                stack.callback(process.wait)
                stack.callback(process.terminate)
            self._until_begun()
            yield said
            for process in processes:
                output, _ = process.communicate(timeout=seconds + 30)
                if process.returncode:
                    raise RuntimeError(f"a client ended with code {process.returncode}")
                said.append(Said(**json.loads(output)))
        if not self.books.balanced or self.books.leased:
            raise RuntimeError(f"the books do not balance: {self.books}")

    def _until_begun(self) -> None:
        deadline = time.monotonic() + _START_S
        while not self.books.done:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no client began within {_START_S:.0f} s")
            time.sleep(0.01)


@contextmanager
def shard_load(fsync: str, clients: int) -> Iterator[ShardLoad]:
    """A new Redis for so many clients, with more boards than they can scan; gone at the end of the block."""
    options = (*FSYNC[fsync], "--loglevel", "warning")
    with (
        tempfile.TemporaryDirectory(prefix="threadmill-bench-redis-") as folder,
        EmbeddedRedis(Path(folder), options=options) as server,
        connect(server.url) as client,
    ):
        yield ShardLoad(server.url, client, clients)
