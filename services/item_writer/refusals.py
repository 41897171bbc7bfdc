"""Whether a database's error says "not this item" or "not now"."""

from __future__ import annotations

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

REFUSING_STATES = ("22", "23", "54", "P0")
"""SQLSTATE classes that speak of the data: data exception, constraint, limit exceeded, raised by a trigger."""
DRIVER_ERRORS = (OverflowError, ValueError)
"""What drivers raise as it is for values they cannot send."""
MAX_ERROR = 500
"""Characters of an error that are kept."""


def is_refusal(error: Exception) -> bool:
    """Whether the same item would be refused again.

    When in doubt it is not: what is retried is not lost, but what is parked by mistake (a table that is being altered,
    a full disk) has to be fetched back by hand.
    """
    if isinstance(error, DBAPIError):
        if state := getattr(error.orig, "sqlstate", None):
            return str(state).startswith(REFUSING_STATES)
        return isinstance(error, DataError | IntegrityError)
    # What a driver cannot even send: an integer too big, text that is not UTF-8 or holds NUL.
    return isinstance(error, (StatementError, *DRIVER_ERRORS))


def sentence(error: Exception) -> str:
    """The database's own words, on one line, without the statement and its values."""
    cause = error.orig if isinstance(error, StatementError) and error.orig is not None else error
    return " ".join(f"{type(cause).__name__}: {cause}".split())[:MAX_ERROR]
