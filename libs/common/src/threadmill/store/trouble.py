"""What Redis's errors mean to an operator: what is wrong, and what to do next, in one sentence."""

from __future__ import annotations

from redis.exceptions import AuthenticationError, AuthorizationError, BusyLoadingError, NoPermissionError

from threadmill.store.connection import UNREACHABLE

_MEANINGS = (
    (
        "command not allowed when used memory > 'maxmemory'",
        "is full and takes nothing new: let workers drain it, or raise its maxmemory",
    ),
    ("read only replica", "is a replica and takes no work: set THREADMILL_REDIS_URL to its primary"),
    ("MISCONF", "cannot write to its disk and takes no work: its log says why"),
    ("NOREPLICAS", "has too few replicas to take work: see its min-replicas-to-write"),
    ("BUSY ", "is busy with somebody's script: try again, or end it with redis-cli SCRIPT KILL"),
    ("Link with MASTER is down", "is a replica that has lost its primary: set THREADMILL_REDIS_URL to the primary"),
    ("unknown command", "does not know a command that Threadmill needs: Redis 6.2 or newer is needed, with scripts"),
)
_UNREADABLE = ("WRONGTYPE", "not an integer", "not a float", "user_script", "Error running script", "script: ")


def meaning(error: BaseException) -> str:
    """What came of Redis's answer, as what follows on "Redis at <url> "; empty if the words are not known."""
    if isinstance(error, BusyLoadingError):
        return "is loading its data: try again in a while"
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return f"refused us ({error}): set user and password in THREADMILL_REDIS_URL, or give the user the rights"
    if isinstance(error, UNREACHABLE):
        return f"stopped answering ({error}): try again once it does"
    text = str(error)
    return next((sentence for words, sentence in _MEANINGS if words in text), "")


def is_unreadable(error: BaseException) -> bool:
    """Whether the error may come of what a key holds: Redis says it of a type or a script, we of a value or a text."""
    if isinstance(error, ValueError | OverflowError | TypeError | LookupError):
        return True
    return any(words in str(error) for words in _UNREADABLE)
