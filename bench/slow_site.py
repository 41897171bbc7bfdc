"""A slow forum that counts what is asked of it: the demo forum with a latency."""

import json
import math
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.child import server
from bench.pages import COMMENTS_PER_PAGE
from bench.post_ids import listed


@dataclass(frozen=True, slots=True)
class Post:
    """A post with comments, and how many comment pages they fill."""

    id: str
    pages: int


@dataclass(frozen=True, slots=True)
class Downloads:
    """Comment pages asked for since the last reset: of how many different ones, and how often in all."""

    different: int
    all: int

    @property
    def twice(self) -> int:
        """Downloads of a page that had been downloaded before."""
        return self.all - self.different


class SlowSite:
    """The demo forum at `url`, without a slash at the end."""

    def __init__(self, url: str) -> None:
        self.url = url

    def posts(self) -> list[Post]:
        """All posts that have comments, in the order of the boards."""
        counts = ((str(post["post_id"]), int(post["comment_count"])) for post in listed(self.url))
        return [Post(key, math.ceil(count / COMMENTS_PER_PAGE)) for key, count in counts if count]

    def slow_down(self, mean_ms: float) -> None:
        """Answers take so long on average from now on: from half of it to half more, or all would come at once."""
        self._ask("/knobs", {"latency_ms": mean_ms / 2, "jitter_ms": mean_ms})

    def downloads(self) -> Downloads:
        """What was asked for."""
        hits = [n for path, n in self._ask("/hits?paths=1")["paths"].items() if path.startswith("/BBS/comment/")]
        return Downloads(len(hits), sum(hits))

    def reset(self) -> None:
        """Begins to count anew."""
        self._ask("/hits/reset", {})

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data)) as response:
            return json.load(response)


@contextmanager
def slow_site(*options: str) -> Iterator[SlowSite]:
    """Serves a demo forum of these options on loopback; fast, until it is told to slow down."""
    with server("demo_forum", "--port", "0", *options) as port:
        yield SlowSite(f"http://127.0.0.1:{port}")
