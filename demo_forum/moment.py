"""Times on the forum, as whole seconds since 1970 and as text."""

from datetime import UTC, datetime

# When serving begins, by the forum's own calendar. Fixed: a forum that read the clock would differ every day.
EPOCH_S = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp())


def iso(at_s: int) -> str:
    """Seconds since 1970 as ISO 8601 text, such as ``2026-01-02T03:04:05Z``."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def normalised(text: str) -> str:
    """An ISO 8601 time with any offset as `iso` writes it; text that is no such time comes back as it is.

    As it is, because a stored time that cannot be read is a row that differs, not a reason to stop checking.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return text
    moment = moment.astimezone(UTC)
    return text if moment.microsecond else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
