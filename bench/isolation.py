"""Whether long threads hold up the list scan: 1 % of posts have comment trees 1,000 times longer than the others.

Every scan is run with them and without, in turn; the ratio of the two rates is what counts. Threadmill runs its three
services, one process each; scrapy-redis one process for all three kinds of pages, as many downloads at a time as those
three together, with its default queue and with its first-in-first-out one. Items stay in Redis on both sides.

All processes share the machine, so that CPU would be what they compete for. It must not be: the site takes 100 ms for
every page and few pages are downloaded at a time, so the site is the limit of a scan; the busiest process's share of a
core is shown. A side that is not done after the time limit is measured up to it.
"""

import argparse
import statistics
import sys
from dataclasses import asdict
from typing import Any

from bench.plots import Plot
from bench.report import Claim, Report
from bench.scan import Plan, Scan, Start, scan, scrapy_redis, threadmill

OURS = "Threadmill"
SIDES: dict[str, Start] = {
    OURS: threadmill,
    "scrapy-redis": scrapy_redis("PriorityQueue"),
    "scrapy-redis, FIFO": scrapy_redis("FifoQueue"),
}
RATIO = 0.95
FULL, FULL_ROUNDS = Plan(boards=4, list_pages=65, concurrency=4, latency_s=0.1, limit_s=10.5), 3
SHORT, SHORT_ROUNDS = Plan(boards=4, list_pages=8, concurrency=4, latency_s=0.05, limit_s=1.5), 1

Pair = dict[bool, Scan]
"""A round of one side: without stragglers, and with them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench isolation`."""
    parser.add_argument("--rounds", type=int, help=f"default {FULL_ROUNDS}")


def measure(options: argparse.Namespace) -> Report:
    """Every side with and without, round after round; odd rounds the other way round."""
    plan, rounds = (SHORT, SHORT_ROUNDS) if options.short else (FULL, FULL_ROUNDS)
    pairs: dict[str, list[Pair]] = {name: [] for name in SIDES}
    for number in range(options.rounds or rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        for name, start in SIDES.items():
            pair = {stragglers: scan(start, plan, stragglers=stragglers) for stragglers in order}
            pairs[name].append(pair)
            rates = f"{pair[True].list_pages_per_s:.1f} list pages/s with, {pair[False].list_pages_per_s:.1f} without"
            print(f"round {number + 1}, {name}: {rates}", file=sys.stderr, flush=True)
    return _report(plan, pairs)


def ratio(pairs: list[Pair]) -> float:
    """Rate with stragglers over rate without: the median of the rounds' ratios."""
    return statistics.median(pair[True].list_pages_per_s / pair[False].list_pages_per_s for pair in pairs)


def _report(plan: Plan, pairs: dict[str, list[Pair]]) -> Report:
    rows = []
    for name, own in pairs.items():
        for stragglers in (False, True):
            cells = _cells([pair[stragglers] for pair in own])
            shown = f"{ratio(own):.3f}" if stragglers else "-"
            rows.append([f"{name}, {'with' if stragglers else 'without'}", *cells, shown])
    figures: dict[str, Any] = {
        "plan": asdict(plan),
        "ratios": {name: round(ratio(own), 4) for name, own in pairs.items()},
        "rounds": {
            name: [{"with": asdict(pair[True]), "without": asdict(pair[False])} for pair in own]
            for name, own in pairs.items()
        },
    }
    curves = {
        f"{name}, {'with' if stragglers else 'without'}": [
            (at, done + 1) for done, at in enumerate(_middle([pair[stragglers] for pair in own]).list_times_s)
        ]
        for name, own in pairs.items()
        for stragglers in (False, True)
    }
    return Report(
        "isolation",
        ("scan", "list pages/s", "posts known", "posts", "comments", "of long ones", "busiest", "ratio"),
        rows,
        figures,
        [Claim("list scan with stragglers over without", ratio(pairs[OURS]), RATIO)],
        [Plot("isolation", "The list scan, with and without long threads", "s", "list pages done", curves)],
    )


def _middle(scans: list[Scan]) -> Scan:
    """The one with the median rate."""
    return sorted(scans, key=lambda each: each.list_pages_per_s)[len(scans) // 2]


def _cells(scans: list[Scan]) -> list[str]:
    """Medians: list pages/s, seconds until all posts were known, pages of either kind, the busiest process."""
    known = [each.known_s for each in scans if each.known_s is not None]
    return [
        f"{statistics.median(each.list_pages_per_s for each in scans):.2f}",
        f"{statistics.median(known):.1f} s" if len(known) == len(scans) else "cut off",
        *(
            f"{statistics.median(getattr(each, name) for each in scans):.0f}"
            for name in ("posts", "comment_pages", "straggler_pages")
        ),
        f"{statistics.median(each.busiest for each in scans):.0%} CPU",
    ]
