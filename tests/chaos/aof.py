"""The append-only file of a Redis, as bytes: measured while it grows, cut as a power cut does."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from threadmill.ops.aof import EXEC, MULTI, growing_file

EVERY_S = 0.02
SELECT = b"*2\r\n$6\r\nSELECT\r\n"
"""The first command of every file, and the first after a snapshot."""


class AppendOnlyFile:
    """The file at the end of which a Redis in `folder` writes. As a context manager it remembers how it grew.

    With `appendfsync everysec`, what was written is on disk a second or two later; a power cut takes the rest. So
    cutting the file to the size it had then is what a power cut does, to the byte.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._grew = [(0.0, 0)]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="aof", daemon=True)

    @property
    def path(self) -> Path:
        return growing_file(self._folder)

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def size_at(self, moment: float) -> int:
        """What it had reached at that time of the monotonic clock."""
        return max(size for at, size in self._grew if at <= moment)

    @property
    def head(self) -> int:
        """How long its snapshot is, with which a file begins that was written anew: no power cut reaches that."""
        return max(0, self.path.read_bytes().find(SELECT))

    def keep(self) -> None:
        """What it has now is on disk for good."""
        self._grew = [(0.0, self.size)]

    def cut(self, size: int) -> int:
        """Cut the end off; answers how many bytes. Only while Redis does not run."""
        gone = self.size - size
        os.truncate(self.path, size)
        self._grew = [(0.0, size)]
        return gone

    def last_transaction(self) -> tuple[int, int]:
        """Where the last one begins, and where it ends."""
        data = self.path.read_bytes()
        end = data.rindex(EXEC)
        return data.rindex(MULTI, 0, end), end + len(EXEC)

    def _watch(self) -> None:
        inode = 0
        while not self._done.wait(EVERY_S):
            state = self.path.stat()
            if state.st_ino != inode:  # Redis wrote it anew: what was before is another file's
                inode, self._grew = state.st_ino, [(0.0, state.st_size)]
            self._grew.append((time.monotonic(), state.st_size))

    def __enter__(self) -> AppendOnlyFile:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
