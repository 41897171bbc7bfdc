"""What happens to a forum while it grows: an endless list of events, known beforehand."""

import enum
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from demo_forum.config import ForumConfig


class Happening(enum.IntEnum):
    """What an event does. Of events at one instant the smaller comes first."""

    NEW_POST = 0
    NEW_COMMENT = 1
    DELETION = 2


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """The `number`-th event of its kind (from 0), at `at_s` seconds since serving began."""

    at_s: float
    what: Happening
    number: int


def history(config: ForumConfig) -> Iterator[Event]:
    """All events in order of time: each kind at even intervals, none after `growth_seconds`."""
    rates = {
        Happening.NEW_POST: config.new_posts_per_minute,
        Happening.NEW_COMMENT: config.new_comments_per_minute,
        Happening.DELETION: config.deletions_per_minute,
    }
    return heapq.merge(*(_events(what, rate, config.growth_seconds) for what, rate in rates.items() if rate))


def _events(what: Happening, per_minute: float, until_s: float | None) -> Iterator[Event]:
    for number in count():
        at_s = (number + 1) * 60 / per_minute
        if until_s is not None and at_s > until_s:
            return
        yield Event(at_s, what, number)
