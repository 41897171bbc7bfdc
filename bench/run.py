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
    pages: how many pages are timed, after the warm-up.
    warmup_pages: how many come before.
    warmup_seconds, seconds: a slow side is cut off after these, so that it is measured over fewer pages, not
    for longer.
    """

    site_url: str
    redis_url: str
    near_redis_url: str
    post_ids_file: str
    pages: int
    warmup_pages: int
    warmup_seconds: float
    seconds: float

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
