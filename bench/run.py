"""What one side is asked to do in one run; travels to the side's process as one JSON argument."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Run:
    """One side, one worker process, one Redis distance.

    site_url: the forum, without a slash at the end.
    redis_url: the Redis a side works with, at the distance that is measured.
    near_redis_url: the same server without the distance, for filling in the tasks and for reading its
    counters.
    post_ids_file: the posts to collect, one id a line; more than enough for the pages wanted.
    pages: how many pages are timed at most, after the warm-up.
    warmup_pages, warmup_seconds: the warm-up is over at whichever comes first.
    seconds: how long is timed; a side that has not seen `least_pages` by then goes on until it has, or until
    `longest_seconds`.
    """

    site_url: str
    redis_url: str
    near_redis_url: str
    post_ids_file: str
    pages: int
    warmup_pages: int
    warmup_seconds: float
    seconds: float
    least_pages: int = 0
    longest_seconds: float = 0.0

    def to_json(self) -> str:
        """The argument a side's process is started with."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote."""
        return cls(**json.loads(text))

    def post_ids(self) -> list[str]:
        """The posts to collect, in order."""
        return Path(self.post_ids_file).read_text().split()

    def is_over(self, pages: int, seconds: float) -> bool:
        """Whether enough was timed: `pages` pages in `seconds` seconds."""
        if pages >= self.pages:
            return True
        return seconds >= (self.seconds if pages >= self.least_pages else self.longest_seconds)
