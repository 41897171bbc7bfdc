"""Durations as people write them: `90s`, `10m`, `1h30m`, `1d`."""

from __future__ import annotations

import re

MAX_S = 366 * 86_400
_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d{1,8})w)?(?:(\d{1,8})d)?(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s)?", re.ASCII)


def seconds_of(text: str) -> int:
    """The duration in seconds, 1 s to 366 days; `ValueError` with a sentence for anything else."""
    found = _DURATION.fullmatch(text)
    seconds = sum(int(n or 0) * unit for n, unit in zip(found.groups(), _UNITS.values(), strict=True)) if found else 0
    if not 1 <= seconds <= MAX_S:
        raise ValueError(f"{text!r} is no duration: write it as 90s, 10m, 1h30m or 1d; 1 s to 366 days")
    return seconds


def duration_text(seconds: int) -> str:
    """The same as text, in the largest units: 5400 is `1h30m`, 0 is `0s`."""
    parts = []
    for unit, size in _UNITS.items():
        if unit != "w" and seconds >= size:
            parts.append(f"{seconds // size}{unit}")
            seconds %= size
    return "".join(parts) or "0s"
