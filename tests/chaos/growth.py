"""A forum that grows while the dispatcher has its boards scanned again and again, and what that cost in downloads."""

from __future__ import annotations

import itertools
import json
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from end_to_end.pipeline import Pipeline
from threadmill.model.stages import STAGES
from threadmill.store.status import items_waiting

INTERFACES = ("list", "post", "comment", "total")
FORUM = ["--forums", "10", "--pages-per-forum", "3", "--mean-comments", "10", "--list-order", "active", "--pinned", "2"]
BOARDS = [str(number) for number in range(1, 11)]


@dataclass(frozen=True)
class Growth:
    """How long the forum grows, s, how often each board is scanned, and scanned as a whole, and how much is written.

    GROWTH="40 5s 15s" makes it shorter and scans at even intervals; GROWTH="180 2s..1m 1m 0.1" is a quiet forum.
    """

    seconds: float = 180.0
    often: str = "2s..1m"
    whole: str = "1m"
    busy: float = 1.0
    """1: 30 posts, 300 comments and 10 deletions a minute, over all boards."""

    @classmethod
    def from_environment(cls) -> Growth:
        given = os.environ.get("GROWTH", "").split()
        return cls(float(given[0]), *given[1:3], *map(float, given[3:])) if given else cls()

    @property
    def forum(self) -> list[str]:
        """The options of such a demo forum."""
        a_minute = {"new-posts": 30.0, "new-comments": 300.0, "deletions": 10.0}
        rates = [(f"--{what}-per-minute", str(number * self.busy)) for what, number in a_minute.items()]
        return [*FORUM, *itertools.chain.from_iterable(rates), "--growth-seconds", str(self.seconds)]

    def boards_file(self, folder: Path) -> Path:
        """The ten boards, as the dispatcher is told of them."""
        shortest, _, longest = self.often.partition("..")
        pace = f'adaptive = {{ min = "{shortest}", max = "{longest}" }}' if longest else f'every = "{shortest}"'
        file = folder / "boards.toml"
        file.write_text(f'[[board]]\nids = {json.dumps(BOARDS)}\n{pace}\nfull_every = "{self.whole}"\n')
        return file


def idle(rig: Pipeline) -> bool:
    """Whether nothing is left to do, and all that was collected is stored; dead processes are started again."""
    rig.fleet.tend()
    work = ("tasks", "requests", "leased", "delayed")
    return not any(rig.books(stage)[name] for stage in STAGES for name in work) and not items_waiting(
        rig.deployment.client, rig.deployment.lanes()
    )


def scans(rig: Pipeline) -> list[int]:
    """How often each board was scanned."""
    boards = rig.deployment.client.hvals(rig.lane.boards)
    return sorted(json.loads(board).get("last", {}).get("number", 0) for board in boards)


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
