"""A disk of a few megabytes, to be filled: a tmpfs in a mount namespace of its own, so nobody need be root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from threadmill.ops.children import start_child

_KEEP = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec sleep infinity'


@dataclass(frozen=True)
class SmallDisk:
    """A disk at `folder`, for those whose command begins with `launcher`; all others reach it through `seen`."""

    folder: Path
    keeper: int
    """The process in whose namespaces it is: it outlives those that use it."""
    as_root: bool

    @property
    def launcher(self) -> tuple[str, ...]:
        user = () if self.as_root else ("--user", "--preserve-credentials")
        return ("nsenter", f"--target={self.keeper}", "--mount", *user)

    @property
    def seen(self) -> Path:
        return Path(f"/proc/{self.keeper}/root{self.folder}")

    def fill(self) -> None:
        """A ballast that leaves no byte."""
        with (self.seen / "ballast").open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4_096))
            except OSError:
                return

    def make_room(self) -> None:
        (self.seen / "ballast").unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """Mount one at `folder`; skips the test, saying why, where the kernel lets us have none."""
    folder.mkdir(parents=True)
    refused = []
    for user in (["--user", "--map-root-user"], []):
        command = ["unshare", *user, "--mount", "sh", "-c", _KEEP, "sh", size, str(folder.resolve())]
        keeper = start_child(command, output=subprocess.PIPE)
        said = keeper.stdout.readline() if keeper.stdout else b""
        try:
            if said == b"mounted\n":
                yield SmallDisk(folder.resolve(), keeper.pid, as_root=not user)
                return
            refused.append(said.decode().strip())
        finally:
            keeper.kill()
            keeper.communicate()
    pytest.skip(f"the kernel lets us mount no small disk: {'; '.join(refused)}")
