"""Being told to stop: SIGTERM or SIGINT as a flag, and pauses that it cuts short."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """While it is entered, the signals set `requested` and interrupt nothing that is under way. For the main thread."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # A pipe, not a threading.Event: its lock may be held where the signal's handler runs.
        self._heard, self._told = os.pipe()
        self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._heard)
        os.close(self._told)

    def wait(self, seconds: float) -> bool:
        """Pause for so long, or until told to stop; answers whether it was told."""
        select.select([self._heard], [], [], seconds)
        return self.requested

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:
            self.requested = True
            os.write(self._told, b"\0")
