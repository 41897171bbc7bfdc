"""The running forum: installed, filled and served, and stopped again."""

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from .environment import Environment, SpiritError

_HERE = Path(__file__).parent
_SEED_TIMEOUT_S = 300
_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Forum:
    """A Spirit that answers at `base_url` and keeps its rows in `database`."""

    base_url: str
    database: Path
    pid: int


@contextmanager
def spirit_forum(data: Path) -> Iterator[Forum]:
    """Spirit, freshly filled, for as long as the context lasts. Everything it makes is in the folder `data`.

    Raises `SpiritError` with a plain message if Spirit cannot be installed, filled or started.
    """
    environment = Environment(data / "venv")
    environment.ensure()
    content = (data / "forum").resolve()
    shutil.rmtree(content, ignore_errors=True)
    content.mkdir(parents=True)
    variables = {**os.environ, "SPIRIT_DATA": str(content), "PYTHONDONTWRITEBYTECODE": "1"}
    _seed(environment, variables)
    with (content / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [environment.python, _HERE / "serve.py"],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            base_url = f"http://127.0.0.1:{_port(server, content / 'server.log')}"
            _wait(base_url, content / "server.log")
            yield Forum(base_url, content / "spirit.sqlite3", server.pid)
        finally:
            _stop(server)


def _seed(environment: Environment, variables: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            [environment.python, _HERE / "seed.py"],
            env=variables,
            capture_output=True,
            text=True,
            timeout=_SEED_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SpiritError(f"Spirit was not filled within {_SEED_TIMEOUT_S} s") from None
    if done.returncode:
        raise SpiritError(f"Spirit cannot be filled:\n{done.stderr.strip()[-2000:]}")


def _port(server: "subprocess.Popen[bytes]", log: Path) -> int:
    """The port, which is the first line the server prints."""
    assert server.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(server.stdout, selectors.EVENT_READ)
        line = server.stdout.readline() if selector.select(_START_TIMEOUT_S) else b""
    if not line.strip().isdigit():
        raise SpiritError(f"Spirit does not start:\n{log.read_text(errors='replace')[-2000:]}")
    return int(line)


def _wait(base_url: str, log: Path) -> None:
    """Until the first page answers."""
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with urlopen(base_url + "/", timeout=_START_TIMEOUT_S):
                return
        except (URLError, OSError) as error:
            if time.monotonic() > deadline_s:
                raise SpiritError(
                    f"Spirit does not answer ({error}):\n{log.read_text(errors='replace')[-2000:]}"
                ) from None
            time.sleep(0.1)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    for pipe in filter(None, (server.stdin, server.stdout)):
        pipe.close()
