"""Helper processes (site, proxy, Redis) that live as long as a `with` block."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_START_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 5.0


@contextmanager
def child(command: Sequence[str], *, quiet: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `command` in the checkout's root and ends it at the end of the block.

    Its output is dropped, and with `quiet` its errors too.
    """
    errors = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def server(module: str, *arguments: str) -> Iterator[int]:
    """Runs `python -m module … --port-file PATH` and gives the loopback port it listens on."""
    with tempfile.TemporaryDirectory(prefix="threadmill-bench-") as folder:
        port_file = Path(folder, "port")
        with child([sys.executable, "-m", module, *arguments, "--port-file", str(port_file)]) as process:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while not port_file.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"{module} ended with code {process.returncode} before it listened")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{module} did not listen within {_START_TIMEOUT_S:.0f} s")
                time.sleep(0.01)
            yield int(port_file.read_text())
