"""Which forum the sides crawl: the demo forum if it is fast enough, else the benchmark's own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.child import server
from bench.post_ids import post_ids
from bench.site_rate import site_rate

# The demo forum large enough for 15,000 pages, and with as many items a page as the benchmark's own.
COMMANDS = {
    "bench": ("bench.site", "--port", "0"),
    "demo": ("demo_forum", "--port", "0", "--forums", "60", "--mean-comments", "55"),
}
ENOUGH_PAGES_PER_S = 8_000  # several times the fastest crawler in one process
_PROBE_POSTS = 100
_PROBE_S = 1.0


@contextmanager
def forum(choice: str) -> Iterator[str]:
    """Starts the forum `choice` (demo, bench or auto), says which and how fast it is, and gives its URL."""
    if choice == "auto":
        choice = "demo" if _fast_enough("demo") else "bench"
    with server(*COMMANDS[choice]) as port:
        print(f"Site: {choice}, {_rate(port):,.0f} pages/s on its own", file=sys.stderr, flush=True)
        yield f"http://127.0.0.1:{port}"


def _fast_enough(choice: str) -> bool:
    try:
        with server(*COMMANDS[choice]) as port:
            rate = _rate(port)
    except RuntimeError as error:
        print(f"Site: not {choice}: {error}", file=sys.stderr)
        return False
    if rate < ENOUGH_PAGES_PER_S:
        print(f"Site: not {choice}: {rate:,.0f} pages/s, under {ENOUGH_PAGES_PER_S:,}", file=sys.stderr)
    return rate >= ENOUGH_PAGES_PER_S


def _rate(port: int) -> float:
    return site_rate(port, post_ids(f"http://127.0.0.1:{port}", _PROBE_POSTS), _PROBE_S)
