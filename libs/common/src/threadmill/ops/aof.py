"""The append-only file of a Redis of ours: where it grows, and what a power cut leaves at its end."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

MULTI = b"*1\r\n$5\r\nMULTI\r\n"
EXEC = b"*1\r\n$4\r\nEXEC\r\n"


def growing_file(folder: Path) -> Path:
    """The file at whose end the Redis in `folder` writes: its only one until 6.2, since 7.0 the last increment."""
    increments = folder.glob("appendonlydir/*.incr.aof")
    return max(increments, key=lambda file: int(file.name.split(".")[-3]), default=folder / "appendonly.aof")


def drop_half_transaction(folder: Path) -> int:
    """Remove a transaction without an end from the end of the file; answers how many bytes. Not while Redis runs.

    Redis does not run such a transaction when it loads the file, but when the cut is within a command it removes that
    command only, and writes on behind the rest: at the *next* start the half transaction is run after all, in one with
    the first that follows it. (Seen in 6.2.14 and 7.0.15; mended in Valkey by its pull request 4342.)
    """
    path = growing_file(folder)
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begun = data.find(MULTI, max(0, data.rfind(EXEC)))
    if begun < 0:
        return 0
    os.truncate(path, begun)
    return size - begun
