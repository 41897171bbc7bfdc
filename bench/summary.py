"""From single runs to the table and the claims: medians over the rounds, ratios within each round."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.report import Claim
from bench.sides import BASELINE, THREADMILL

Measured = dict[str, Any]
Rounds = Sequence[Sequence[Measured]]

# The acceptance of step 3: how many times a side's pages/s, with Redis 2 ms away where the side uses it.
_TIMES = {BASELINE: 3.5, "scrapy-redis": 10.0, "scrapy-redis-stats": 100.0, "crawlee": 2.0}
_CLAIMED_MS = 2.0
_FAR_MS = 20.0


@dataclass(frozen=True, slots=True)
class Row:
    """One side at one distance of Redis (None where it uses none); figures are medians of the rounds.

    lowest, highest: the pages/s of the rounds. ratio: pages/s over the baseline's of the same round, because a
    shared machine drifts by more than the sides do; None without a baseline. seconds: wall time of one run, to
    which the CPU seconds of the worker and of the Redis server belong. peak_rss_mb, redis_peak_mb: memory of
    the worker and of the server, MiB.
    """

    side: str
    redis_delay_ms: float | None
    pages_per_s: float
    lowest: float
    highest: float
    ratio: float | None
    items_per_page: float
    seconds: float
    cpu_seconds: float
    cpu_ms_per_page: float
    peak_rss_mb: float
    redis_calls_per_page: float
    redis_cpu_seconds: float
    redis_cpu_us_per_page: float
    redis_peak_mb: float


def summarise(rounds: Rounds) -> list[Row]:
    """A row for each side and distance: the baseline first, then by name."""
    groups = {(run["side"], run["redis_delay_ms"]) for measured in rounds for run in measured}
    return [_row(rounds, *group) for group in sorted(groups, key=_order)]


def _order(group: tuple[str, float | None]) -> tuple[bool, str, float]:
    side, delay = group
    return side != BASELINE, side, delay or 0.0


def _row(rounds: Rounds, side: str, delay: float | None) -> Row:
    runs = [run for measured in rounds if (run := _find(measured, side, delay))]

    def median(field: str) -> float:
        return float(statistics.median(run[field] for run in runs))

    rates = [run["pages_per_s"] for run in runs]
    return Row(
        side,
        delay,
        statistics.median(rates),
        min(rates),
        max(rates),
        paired(rounds, (side, delay), (BASELINE, None)),
        statistics.median(run["items"] / run["pages"] for run in runs),
        median("seconds"),
        median("cpu_seconds"),
        median("cpu_ms_per_page"),
        median("peak_rss_mb"),
        median("redis_calls_per_page"),
        median("redis_cpu_seconds"),
        median("redis_cpu_us_per_page"),
        median("redis_peak_mb"),
    )


def paired(rounds: Rounds, one: tuple[str, float | None], other: tuple[str, float | None]) -> float | None:
    """The median over the rounds of one side's pages/s over another's of that round; None if one is missing.

    A side is named with its distance; None finds it at any.
    """
    ratios = [
        mine["pages_per_s"] / theirs["pages_per_s"]
        for measured in rounds
        if (mine := _find(measured, *one)) and (theirs := _find(measured, *other))
    ]
    return statistics.median(ratios) if ratios else None


def _find(measured: Iterable[Measured], side: str, delay: float | None) -> Measured | None:
    return next((run for run in measured if run["side"] == side and run["redis_delay_ms"] == delay), None)


def claims(rounds: Rounds, rows: Iterable[Row]) -> list[Claim]:
    """The acceptance, for what was measured."""
    return [*_ratio_claims(rounds), *_cost_claims(rows)]


def _ratio_claims(rounds: Rounds) -> Iterator[Claim]:
    ours = (THREADMILL, _CLAIMED_MS)
    for peer, bound in _TIMES.items():
        at = None if peer == BASELINE else _CLAIMED_MS
        if ratio := paired(rounds, ours, (peer, at)):
            yield Claim(f"threadmill's pages/s over {peer}'s, Redis {_CLAIMED_MS:g} ms away", ratio, bound, "x")
    if ratio := paired(rounds, (THREADMILL, _FAR_MS), (THREADMILL, 0.0)):
        yield Claim(f"threadmill's pages/s with Redis {_FAR_MS:g} ms away over 0 ms", ratio, 0.9)


def _cost_claims(rows: Iterable[Row]) -> Iterator[Claim]:
    row = next((row for row in rows if (row.side, row.redis_delay_ms) == (THREADMILL, _CLAIMED_MS)), None)
    if row:
        at = f"threadmill, Redis {_CLAIMED_MS:g} ms away"
        yield Claim(f"{at}: Redis calls per page", row.redis_calls_per_page, 0.2, at_most=True)
        yield Claim(f"{at}: Redis CPU per page", row.redis_cpu_us_per_page, 80, "us", at_most=True)


TITLES = (
    "side",
    "Redis\naway",
    "\npages/s",
    "\nlow-high",
    "\nratio",
    "items\n/page",
    "wall\ns",
    "CPU\ns",
    "CPU\nms/page",
    "RSS\nMiB",
    "calls\n/page",
    "Redis\nCPU s",
    "Redis\nus/page",
    "Redis\nMiB",
)


def cells(row: Row) -> list[str]:
    """A row for people; a dash where a column does not apply."""
    cells = [
        row.side,
        "-" if row.redis_delay_ms is None else f"{row.redis_delay_ms:g} ms",
        _rate(row.pages_per_s),
        f"{_rate(row.lowest)}-{_rate(row.highest)}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        f"{row.items_per_page:.1f}",
        f"{row.seconds:.1f}",
        f"{row.cpu_seconds:.2f}",
        f"{row.cpu_ms_per_page:.2f}",
        f"{row.peak_rss_mb:.0f}",
    ]
    if row.redis_delay_ms is None:
        return [*cells, "-", "-", "-", "-"]
    return [
        *cells,
        f"{row.redis_calls_per_page:.2f}",
        f"{row.redis_cpu_seconds:.2f}",
        f"{row.redis_cpu_us_per_page:.0f}",
        f"{row.redis_peak_mb:.0f}",
    ]


def _rate(pages_per_s: float) -> str:
    return f"{pages_per_s:.1f}" if pages_per_s < 100 else f"{pages_per_s:.0f}"
