"""Item writers as processes, for the tests of them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def eventually(what: Callable[[], Any], deadline_s: float = 20.0) -> None:
    """Wait until it is true."""
    end = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.01)


class Writers:
    """Item writers of one deployment."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.file = folder / "data" / "rows.db"
        self.environment = {
            "THREADMILL_REDIS_URL": redis_url,
            "THREADMILL_NAMESPACE": "t",
            "THREADMILL_PARTITIONS": "2",
            "THREADMILL_SOURCES": str(ROOT / "sources" / "bbs.toml"),
            "THREADMILL_STORE_URL": f"sqlite:///{self.file}",
        }
        self._log = folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "item_writer"],
                env={**os.environ, **self.environment, **environment},
                stdout=log,
                stderr=log,
            )
        self._running.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> int:
        process.terminate()
        return process.wait(15)

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def rows(self, query: str = "SELECT comment_id FROM comments ORDER BY 1") -> list[Any]:
        """What the query answers; nothing while there is no table yet."""
        try:
            with self.held(begin="") as connection:
                return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []

    def held(self, begin: str = "BEGIN EXCLUSIVE") -> closing[sqlite3.Connection]:
        """The database, with a lock on it until it is closed."""
        connection = sqlite3.connect(self.file, isolation_level=None, timeout=5)
        connection.execute(begin)
        return closing(connection)

    def end(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
