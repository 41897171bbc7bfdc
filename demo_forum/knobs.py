"""The knobs that make the forum slow, strict or broken."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from demo_forum.harms import HARMS
from demo_forum.setting import require_types, setting


@dataclass(frozen=True, slots=True)
class Knobs:
    """How the three interfaces misbehave. Changed by replacement. Raises ValueError, saying what is wrong."""

    latency_ms: float = setting(0.0, "milliseconds every answer takes at least")
    jitter_ms: float = setting(0.0, "milliseconds added at random on top, 0 up to this")
    error_rate: float = setting(0.0, "share of requests (0 to 1) answered with status 500")
    rate_limit_per_s: float | None = setting(None, "requests per second above which the answer is 429")
    retry_after_s: int = setting(1, "seconds a 429 or 503 asks to wait, in its Retry-After")
    harm: str = setting("", f"harms by name, with commas between them: {', '.join(HARMS)}")
    harm_rate: float = setting(0.0, "share of requests (0 to 1) that come to one of these harms")
    harm_at: str = setting("", "paths that always come to harm, as /BBS/post/100001=cut, with spaces between them")
    away: str = setting("", "where the harm `away` leads: URLs with spaces between them")
    down: bool = setting(False, "close connections without an answer")

    def __post_init__(self) -> None:
        require_types(self)
        for name in ("latency_ms", "jitter_ms", "retry_after_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, not {value}")
        for name in ("error_rate", "harm_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if unknown := sorted({*self.harms, *self.harm_by_path.values()} - set(HARMS)):
            raise ValueError(f"no such harm: {', '.join(unknown)}; there are {', '.join(HARMS)}")
        if self.rate_limit_per_s is not None and not 0 < self.rate_limit_per_s < math.inf:
            raise ValueError(f"rate_limit_per_s must be above 0, or null, not {self.rate_limit_per_s}")

    @property
    def harms(self) -> list[str]:
        """The names in `harm`."""
        return [name for name in self.harm.split(",") if name]

    @property
    def harm_by_path(self) -> dict[str, str]:
        """The paths in `harm_at`, each with the harm that it always comes to."""
        pairs = (pair.rpartition("=") for pair in self.harm_at.split())
        return {path: name for path, _, name in pairs}

    def changed(self, changes: Mapping[str, Any]) -> "Knobs":
        """These knobs with `changes` by name."""
        names = [entry.name for entry in fields(self)]
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise ValueError(f"no such knob: {', '.join(unknown)}; there are {', '.join(names)}")
        return replace(self, **changes)
