"""The detail collector, measured from inside: how late its event loop is (`python -m chaos.lag`, by the tests only).

A timer of 10 ms is set again and again; by how much each comes late goes to the file in `LAG_FILE`, as
`<seconds on the monotonic clock> <milliseconds late>`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import wraps
from pathlib import Path
from typing import Any

from detail_collector.__main__ import main
from threadmill.crawl.worker import Worker

EVERY_S = 0.01


def measure(loop: asyncio.AbstractEventLoop, file: Any) -> None:
    """Write down how late the loop is, for as long as it runs."""

    def tick(due: float) -> None:
        now = loop.time()
        file.write(f"{now:.4f} {(now - due) * 1000:.2f}\n")
        loop.call_later(EVERY_S, tick, loop.time() + EVERY_S)

    loop.call_later(EVERY_S, tick, loop.time() + EVERY_S)


def measured(path: Path) -> int:
    """Serve as the detail collector does."""
    opening = Worker.open
    with path.open("a", buffering=8192) as file:

        @wraps(opening)
        async def open_and_measure(worker: Worker, spider: Any) -> None:
            measure(asyncio.get_running_loop(), file)
            await opening(worker, spider)

        Worker.open = open_and_measure  # type: ignore[method-assign]
        return main()


if __name__ == "__main__":
    sys.exit(measured(Path(os.environ["LAG_FILE"])))
