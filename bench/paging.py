"""Paging: each page leads to the next, or the first to all of them; time to finish, and the queue's depth meanwhile.

Chained is what the stages do by their sources. Fanned out is what a spider of one's own may do by yielding all requests
at once: `bench.replica.Fanned`. The site answers after 100 to 300 ms; one replica, 16 downloads at a time.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.crew import Terms
from bench.paging_run import PagingRun, paging_runs
from bench.plots import Plot
from bench.redis_server import redis_server
from bench.report import Claim, Report
from bench.slow_site import Post, slow_site

LATENCY_MS = 200.0
CHAINED, FANNED = "chained", "fanned"
TITLES = ("", "seconds", "speed", "deepest queue", "leased", "pages", "downloads")
FORUM = ("--forums", "10", "--mean-comments", "100")


@dataclass(frozen=True, slots=True)
class Size:
    """rounds; long: pages of the one post, about; posts: how many at once, none of them longer."""

    rounds: int
    long: int
    posts: int


FULL = Size(rounds=3, long=60, posts=200)
SHORT = Size(rounds=1, long=8, posts=30)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench paging`."""
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")


def measure(options: argparse.Namespace) -> Report:
    """Both ways in turn, round after round: one long post, then many posts at once."""
    size = SHORT if options.short else FULL
    runs: list[PagingRun] = []
    with redis_server() as port, slow_site(*FORUM) as site:
        loads = _loads(site.posts(), size)
        site.slow_down(LATENCY_MS)
        for number in range(options.rounds or size.rounds):
            for paging in (FANNED, CHAINED) if number % 2 else (CHAINED, FANNED):
                for run in paging_runs(f"redis://127.0.0.1:{port}/0", site, loads, Terms(paging=paging)):
                    print(f"{run.load}, {run.paging}: {run.seconds:.2f} s", file=sys.stderr, flush=True)
                    runs.append(run)
    rows = [_row(load, paging, runs) for load in loads for paging in (CHAINED, FANNED)]
    figures = {"latency_ms": LATENCY_MS, "runs": [asdict(run) for run in runs]}
    return Report("paging", TITLES, rows, figures, _claims(loads, runs), _plots(loads, runs))


def _loads(posts: Sequence[Post], size: Size) -> dict[str, list[Post]]:
    one = min(posts, key=lambda post: (abs(post.pages - size.long), post.id))
    many = [post for post in posts if post.pages <= one.pages and post is not one][: size.posts]
    return {f"one post of {one.pages} pages": [one], f"{len(many)} posts": many}


def _of(load: str, paging: str, runs: Sequence[PagingRun]) -> list[PagingRun]:
    return [run for run in runs if (run.load, run.paging) == (load, paging)]


def _seconds(load: str, paging: str, runs: Sequence[PagingRun]) -> float:
    return statistics.median(run.seconds for run in _of(load, paging, runs))


def _row(load: str, paging: str, runs: Sequence[PagingRun]) -> list[str]:
    """Medians of the rounds; depths are the deepest of any."""
    those = _of(load, paging, runs)
    seconds = _seconds(load, paging, runs)
    return [
        f"{load}, {paging}",
        f"{seconds:.1f}",
        f"{_seconds(load, CHAINED, runs) / seconds:.1f} x",
        f"{max(run.deepest for run in those)}",
        f"{max(run.most_leased for run in those)}",
        f"{those[0].pages}",
        f"{max(run.downloads for run in those)}",
    ]


def _claims(loads: dict[str, list[Post]], runs: Sequence[PagingRun]) -> list[Claim]:
    one, many = loads
    twice = sum(run.downloads - run.pages for run in runs)
    deepest = max(run.deepest for run in _of(many, CHAINED, runs))
    return [
        Claim("pages downloaded twice", twice, 0, at_most=True),
        Claim("chained: deepest queue, a post", deepest / len(loads[many]), 1, at_most=True),
        Claim(
            f"{one}, fanned out over chained", _seconds(one, CHAINED, runs) / _seconds(one, FANNED, runs), 2, unit="x"
        ),
    ]


def _plots(loads: dict[str, list[Post]], runs: Sequence[PagingRun]) -> list[Plot]:
    """The first run of each way."""
    return [
        Plot(
            f"paging-{name}",
            f"Requests waiting in the queue: {load}",
            "seconds",
            "requests",
            {
                paging: [(sample.seconds, sample.requests) for sample in _of(load, paging, runs)[0].samples]
                for paging in (CHAINED, FANNED)
            },
        )
        for name, load in zip(("one", "many"), loads, strict=True)
    ]
