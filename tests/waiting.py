"""Waiting for a condition with a deadline, in place of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(look: Callable[[], T], seconds: float = 30.0, every: float = 0.02, what: str = "") -> T:
    """Call `look` until it answers something true, and return that; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := look():
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what or look}")
        time.sleep(every)
