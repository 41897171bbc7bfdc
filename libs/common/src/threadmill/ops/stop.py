"""Being told to stop (SIGTERM, SIGINT) or to read a file again (SIGHUP): flags, and pauses that they cut short."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """While it is entered, the signals set `requested` and interrupt nothing that is under way. For the main thread.

    With `reloads`, SIGHUP is heard too: `reload_requested`, which whoever reloads sets back.
    """

    def __init__(self, *, reloads: bool = False) -> None:
        self.requested = False
        self.reload_requested = False
        self._signals = (*SIGNALS, signal.SIGHUP) if reloads else SIGNALS
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # A pipe, not a threading.Event: its lock may be held where the signal's handler runs.
        self._heard, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._before = {number: signal.signal(number, self._note) for number in self._signals}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._heard)
        os.close(self._told)

    def wait(self, seconds: float) -> bool:
        """Pause for so long, or until told anything; answers whether it was told to stop."""
        heard, _, _ = select.select([self._heard], [], [], seconds)
        if heard and not self.requested:
            os.read(self._heard, 1024)
        return self.requested

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload_requested = True
        else:
            self.requested = True
        with suppress(BlockingIOError):  # it is full of what was told before, and wakes just as well
            os.write(self._told, b"\0")
