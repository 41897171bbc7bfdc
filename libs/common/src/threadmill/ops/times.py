"""Times as operators read them."""

from __future__ import annotations

from threadmill.model.items import utc_text

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""


def time_text(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 UTC text.

    What lies beyond the years 1 to 9999, which only a damaged entry says, is their end.
    """
    return utc_text(max(_FIRST_MS, min(ms, _LAST_MS)))
