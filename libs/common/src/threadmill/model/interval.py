"""How often a board is scanned: at even intervals, by cron, or as often as it is worth it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from threadmill.model.duration import duration_text, seconds_of

WANTED = 5
"""Posts that a scan of an adaptive board shall bring, on average."""
FASTER, SLOWER = 0.25, 2.0
"""What an adaptive pace may be multiplied with after one scan, at least and at most."""


class Interval(Protocol):
    """When a board is due next. `model/board.py` keeps the pace; a strategy holds no state."""

    def due_after(self, at_ms: int, *, phase: float, pace_s: int) -> int:
        """When a board is due (ms) that was dispatched at `at_ms`: later than that, always.

        `phase` (0 to 1) is the board's own: boards of one interval are not all due at once. `pace_s` is what
        `pace_after` answered last, 0 before that.
        """
        ...

    def pace_after(self, pace_s: int, brought: int) -> int:
        """The pace (s) after a scan that handed down so many posts; 0 where the clock alone decides."""
        ...

    def spelled(self) -> dict[str, Any]:
        """As a boards file spells it."""
        ...


class _ByTheClock:
    def pace_after(self, pace_s: int, brought: int) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Every(_ByTheClock):
    """At even intervals. Due times lie on a grid, so that a late scan delays no other and none is made up for: after a
    scan comes the first of them that is at least half an interval away."""

    seconds: int

    def due_after(self, at_ms: int, *, phase: float, pace_s: int) -> int:
        step = self.seconds * 1000
        first, earliest = int(phase * step), at_ms + step // 2
        return first - (first - earliest) // step * step

    def spelled(self) -> dict[str, Any]:
        return {"every": duration_text(self.seconds)}

    def __str__(self) -> str:
        return duration_text(self.seconds)


@dataclass(frozen=True, slots=True)
class Cron(_ByTheClock):
    """By a cron expression of five fields, in a time zone.

    It is read by cronsim, which is small, needs nothing else, and at changes of daylight saving time does what Debian's
    cron does: nothing is skipped, and nothing is done twice.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        try:
            if len(self.expression.split()) != 5:
                raise CronSimError("it must have five fields")
            next(CronSim(self.expression, datetime(2026, 1, 1, tzinfo=self._zone())))
        except CronSimError as error:
            raise ValueError(f"{self.expression!r} is no cron expression: {error}; e.g. */15 * * * *") from None
        except StopIteration:
            raise ValueError(f"{self.expression!r} is a day that never comes") from None

    def due_after(self, at_ms: int, *, phase: float, pace_s: int) -> int:
        start = datetime.fromtimestamp(at_ms / 1000, self._zone())
        return int(next(CronSim(self.expression, start)).timestamp() * 1000)

    def spelled(self) -> dict[str, Any]:
        zone = {"timezone": self.timezone} if self.timezone != "UTC" else {}
        return {"cron": self.expression, **zone}

    def __str__(self) -> str:
        return self.expression if self.timezone == "UTC" else f"{self.expression} {self.timezone}"

    def _zone(self) -> tzinfo:
        if self.timezone == "UTC":
            return UTC
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone {self.timezone!r}; write it as Asia/Seoul") from None


@dataclass(frozen=True, slots=True)
class Adaptive:
    """The more a board brings, the more often it is scanned, between two bounds.

    After a scan that brought n posts the pace is multiplied by √(5 / n), but by no less than 0.25 and no more than 2:
    after 0 or 1 post it is twice as long, after 3 a third longer, after 5 the same, after 20 half as long, after 80 and
    more a quarter as long. So it settles where a scan brings five posts. The root is there because single scans say
    little: at five posts on average they bring two to nine.

    A new board begins at `shortest_s`. Its first scan, to which everything is new, changes nothing.
    """

    shortest_s: int
    longest_s: int

    def __post_init__(self) -> None:
        if self.shortest_s > self.longest_s:
            raise ValueError(
                f"adaptive has min {duration_text(self.shortest_s)} above max {duration_text(self.longest_s)}"
            )

    def due_after(self, at_ms: int, *, phase: float, pace_s: int) -> int:
        return at_ms + 1000 * self._bounded(pace_s)

    def pace_after(self, pace_s: int, brought: int) -> int:
        factor = min(SLOWER, max(FASTER, math.sqrt(WANTED / brought))) if brought else SLOWER
        return self._bounded(round(self._bounded(pace_s) * factor))

    def spelled(self) -> dict[str, Any]:
        return {"adaptive": {"min": duration_text(self.shortest_s), "max": duration_text(self.longest_s)}}

    def __str__(self) -> str:
        return f"{duration_text(self.shortest_s)}..{duration_text(self.longest_s)}"

    def _bounded(self, pace_s: int) -> int:
        return min(self.longest_s, max(self.shortest_s, pace_s))


def read_interval(
    *,
    every: str | None = None,
    cron: str | None = None,
    timezone: str | None = None,
    adaptive: tuple[str, str] | None = None,
) -> Interval:
    """The interval that was spelled so; `ValueError` with a sentence if it is none, or more than one."""
    if timezone is not None and cron is None:
        raise ValueError("a timezone goes with cron")
    match every, cron, adaptive:
        case str(), None, None:
            return Every(seconds_of(every))
        case None, str(), None:
            return Cron(cron, timezone or "UTC")
        case None, None, (shortest, longest):
            return Adaptive(seconds_of(shortest), seconds_of(longest))
    raise ValueError("say how often: exactly one of every, cron and adaptive")
