"""From single runs to the table: medians over the rounds, and ratios to the baseline of the same round."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.sides import BASELINE

Measured = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One side at one distance of Redis (None where it uses none).

    pages_per_s is the median of the rounds, with its lowest and highest; ratio is the median of each round's
    pages/s over the baseline's of that round, because a shared machine drifts by more than the sides do; None
    without a baseline.
    """

    side: str
    redis_delay_ms: float | None
    pages_per_s: float
    lowest: float
    highest: float
    ratio: float | None
    cpu_ms_per_page: float
    items_per_page: float
    peak_rss_mb: float
    redis_calls_per_page: float
    redis_cpu_us_per_page: float


def summarise(rounds: Iterable[Sequence[Measured]]) -> list[Row]:
    """A row for each side and distance, in the order they first appear."""
    groups: dict[tuple[str, float | None], list[tuple[Measured, float | None]]] = {}
    for measured in rounds:
        baseline = next((run["pages_per_s"] for run in measured if run["side"] == BASELINE), None)
        for run in measured:
            ratio = run["pages_per_s"] / baseline if baseline else None
            groups.setdefault((run["side"], run["redis_delay_ms"]), []).append((run, ratio))
    return [_row(side, delay, runs) for (side, delay), runs in sorted(groups.items(), key=_order)]


def _order(group: tuple[tuple[str, float | None], Any]) -> tuple[bool, str, float]:
    (side, delay), _ = group
    return side != BASELINE, side, delay or 0.0


def _row(side: str, delay: float | None, runs: list[tuple[Measured, float | None]]) -> Row:
    def median(field: str) -> float:
        return float(statistics.median(run[field] for run, _ in runs))

    rates = [run["pages_per_s"] for run, _ in runs]
    ratios = [ratio for _, ratio in runs if ratio is not None]
    return Row(
        side,
        delay,
        statistics.median(rates),
        min(rates),
        max(rates),
        statistics.median(ratios) if ratios else None,
        median("cpu_ms_per_page"),
        statistics.median(run["items"] / run["pages"] for run, _ in runs),
        median("peak_rss_mb"),
        median("redis_calls_per_page"),
        median("redis_cpu_us_per_page"),
    )


TITLES = (
    "side",
    "Redis away",
    "pages/s",
    "low-high",
    "ratio",
    "CPU ms/page",
    "items/page",
    "RSS MiB",
    "calls/page",
    "Redis us/page",
)


def cells(row: Row) -> list[str]:
    """A row for people; a dash where a column does not apply."""
    return [
        row.side,
        "-" if row.redis_delay_ms is None else f"{row.redis_delay_ms:g} ms",
        f"{row.pages_per_s:.1f}",
        f"{row.lowest:.0f}-{row.highest:.0f}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        f"{row.cpu_ms_per_page:.2f}",
        f"{row.items_per_page:.1f}",
        f"{row.peak_rss_mb:.0f}",
        f"{row.redis_calls_per_page:.2f}",
        f"{row.redis_cpu_us_per_page:.0f}",
    ]
