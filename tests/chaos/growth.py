"""A forum that grows while its boards are scanned again and again, and what that cost in downloads."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from dataclasses import dataclass
from itertools import count
from typing import Any

from end_to_end.pipeline import Pipeline

INTERFACES = ("list", "post", "comment", "total")
BOARDS = [str(number) for number in range(1, 11)]


@dataclass(frozen=True)
class Growth:
    """How long the forum grows, and how often each board is scanned, s. GROWTH=60,5,30 makes it shorter."""

    seconds: float = 180.0
    every_s: float = 10.0
    whole_every_s: float = 60.0

    @classmethod
    def from_environment(cls) -> Growth:
        given = [float(number) for number in os.environ.get("GROWTH", "").split(",") if number]
        return cls(*given)


def scan(rig: Pipeline, *, whole: bool = False, seconds: float = 120.0) -> None:
    """One scan of all boards, and all it leads to."""
    assert not rig.wait_until_done(rig.submit("list", BOARDS, full=whole).job, seconds).dead


def keep_scanning(rig: Pipeline, growth: Growth, until: float) -> None:
    """Scan all boards in their rhythm until a time on the monotonic clock.

    A scan that lasts longer than the interval delays the next one, as the dispatcher does.
    """
    begun = time.monotonic()
    whole = 1
    for number in count(1):
        due = begun + number * growth.every_s
        if due >= until:
            break
        time.sleep(max(0.0, due - time.monotonic()))  # the rhythm of the scans, not a wait for anything
        is_whole = time.monotonic() - begun >= whole * growth.whole_every_s
        scan(rig, whole=is_whole)
        whole += is_whole
    time.sleep(max(0.0, until - time.monotonic()))


def asked(rig: Pipeline, door: str = "hits") -> dict[str, Any]:
    """What the forum counted: downloads, and of those how many showed something new."""
    body = b"" if door.endswith("reset") else None
    with urllib.request.urlopen(f"{rig.forum_url}/{door}", body, timeout=30) as answer:
        counts: dict[str, Any] = json.load(answer)
    return counts


def ratio(counts: dict[str, Any], interface: str) -> float:
    """Downloads for each one that showed something new."""
    return float(counts[interface]) / max(counts["fresh"][interface], 1)


def table(counts: dict[str, Any]) -> str:
    """Downloads by interface, as people read it."""
    head = f"{'':10}{'downloads':>11}{'with news':>11}{'ratio':>8}"
    rows = [f"{name:10}{counts[name]:>11}{counts['fresh'][name]:>11}{ratio(counts, name):>8.3f}" for name in INTERFACES]
    return "\n".join([head, *rows])
