"""Waiting times: their quantiles, and the curve of how many were over by when."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

_CURVE_POINTS = 200


@dataclass(slots=True)
class Waits:
    """What was waited, in ms."""

    ms: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """The wait that this share (0 to 1) of all did not exceed, ms; between two of them by interpolation."""
        ordered = sorted(self.ms)
        place = share * (len(ordered) - 1)
        low, rest = ordered[int(place)], place % 1
        return low + rest * (ordered[min(int(place) + 1, len(ordered) - 1)] - low)

    @property
    def median(self) -> float:
        return statistics.median(self.ms)

    def figures(self) -> dict[str, float]:
        """For JSON: the count, and quantiles in ms."""
        shares = {"median_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
        return {"count": len(self.ms), **{name: round(self.quantile(share), 3) for name, share in shares.items()}}

    def cells(self) -> list[str]:
        """Count, median, p95, p99 and maximum for a table, ms."""
        return [str(len(self.ms)), *(f"{self.quantile(share):.1f}" for share in (0.5, 0.95, 0.99, 1.0))]

    def curve(self) -> Sequence[tuple[float, float]]:
        """Points (ms, % of waits that were over by then)."""
        shares = [step / _CURVE_POINTS for step in range(_CURVE_POINTS + 1)]
        return [(self.quantile(share), 100 * share) for share in shares]
