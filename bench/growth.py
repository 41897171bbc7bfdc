"""Cost of submit, lease, commit as the queue grows to 5,000,000 requests, and of each dupefilter as it remembers more.

A server for each size, all alive at once and measured in turn, round after round, so that a machine that grows slower
treats all alike. Costs are the server's CPU (`INFO cpu`), the time inside the scripts (`INFO commandstats`) and the
caller's wall time, each per page, task or id; ratios are to the smallest size of the same round, and the median of the
rounds counts. The verbs are the real ones; what waits and what is remembered was filled in by `bench.filling`.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.growth_subjects import FILTERS, Backlog, Cost, Memory, Subject
from bench.memory import free_bytes
from bench.plots import Plot
from bench.report import Claim, Report


@dataclass(frozen=True, slots=True)
class Size:
    """Requests queued (and tasks known), ids a dupefilter has seen; rounds, and calls of each kind in a round."""

    queued: Sequence[int]
    seen: Sequence[int]
    rounds: int
    calls: int


FULL = Size((10_000, 100_000, 1_000_000, 5_000_000), (10_000, 100_000, 1_000_000, 10_000_000), rounds=11, calls=12)
SHORT = Size((1_000, 10_000), (1_000, 10_000), rounds=3, calls=4)
_NEEDED_BYTES = 6e9

Costs = dict[str, dict[int, list[Cost]]]
"""By what was done and at which size, one of each round."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench growth`."""
    parser.add_argument("--part", choices=("queue", "seen"), help="only this half")


def measure(options: argparse.Namespace) -> Report:
    """Fills a server for each size, and measures them in turn."""
    size = SHORT if options.short else FULL
    if not options.short and 0 < free_bytes() < _NEEDED_BYTES:
        raise SystemExit(f"growth needs {_NEEDED_BYTES / 1e9:.0f} GB of free memory; --short needs little")
    queue: Costs = {}
    seen: Costs = {}
    if options.part != "seen":
        queue = _in_turn(size, size.queued, Backlog, ("lease", "commit", "commit, list page", "submit"))
    if options.part != "queue":
        seen = _in_turn(size, size.seen, Memory, (*FILTERS, "versioned"))
    return _report(queue, seen)


def _in_turn(size: Size, counts: Sequence[int], subject: type[Subject], whats: Sequence[str]) -> Costs:
    costs: Costs = {}
    with ExitStack() as stack:
        subjects = {count: subject(stack, count) for count in counts}
        for at in range(-1, size.rounds):  # the first warms up
            for count, one in subjects.items() if at % 2 else reversed(subjects.items()):
                for what in filter(one.holds, whats):
                    cost = one.measure(what, size.calls)
                    if at >= 0:
                        costs.setdefault(what, {}).setdefault(count, []).append(cost)
    return costs


def _report(queue: Costs, seen: Costs) -> Report:
    rows, figures, ratios = [], [], {}
    for part, costs in (("queued", queue), ("seen", seen)):
        for what, by_size in costs.items():
            base = by_size[min(by_size)]
            for count, rounds in sorted(by_size.items()):
                cpu, script, wall = (
                    statistics.median(getattr(c, f) for c in rounds) for f in ("cpu", "script", "wall")
                )
                ratio = statistics.median(c.cpu / b.cpu for c, b in zip(rounds, base, strict=True))
                ratios[what, count] = ratio
                rows.append((what, f"{count:,} {part}", f"{cpu:.1f}", f"{script:.1f}", f"{wall:.1f}", f"{ratio:.2f}"))
                figures.append(
                    {"what": what, part: count, "cpu_us": cpu, "script_us": script, "wall_us": wall, "ratio": ratio}
                )
    claims = [
        Claim(
            f"{what}: cost at {max(by_size):,} queued over {min(by_size):,}", ratios[what, max(by_size)], 1.5, "", True
        )
        for what, by_size in queue.items()
        if what in ("lease", "commit")
    ]
    columns = ("of one page, task or id", "size", "Redis CPU us", "script us", "wall us", "ratio")
    return Report("growth", columns, rows, {"costs": figures}, claims, list(_plots(queue, seen)))


def _plots(queue: Costs, seen: Costs) -> Iterator[Plot]:
    for name, title, x, costs in (
        ("growth-queue", "Cost as the queue grows", "requests queued, tasks known", queue),
        ("growth-seen", "Cost of a dupefilter's check", "ids seen", seen),
    ):
        if costs:
            lines = {
                what: [(n, statistics.median(c.cpu for c in rounds)) for n, rounds in sorted(by_size.items())]
                for what, by_size in costs.items()
            }
            yield Plot(name, title, x, "Redis CPU, us each", lines, log="x")
