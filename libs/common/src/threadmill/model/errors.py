"""Every error Threadmill raises on purpose.

    ThreadmillError
    ├── ConfigError        a setting is wrong or missing
    ├── SourceError        a source definition cannot be read or is inconsistent
    ├── ExtractionError    a page is not what the source's rules say it is
    ├── TaskError          a task cannot be accepted; `reason` is the dead letter's
    └── StoreError         Redis cannot serve us
        ├── StoreUnavailable   it does not answer (yet)
        ├── StoreRefused       it answers, but must not be used as it is (password, eviction policy)
        └── StoreUnreadable    a key holds what Threadmill cannot read; the message names it

Messages are for the operator: what is wrong, and what to do next.
"""


class ThreadmillError(Exception):
    """Base of every error raised on purpose."""


class ConfigError(ThreadmillError):
    """A setting is wrong or missing."""


class SourceError(ThreadmillError):
    """A source definition cannot be read or is inconsistent."""


class ExtractionError(ThreadmillError):
    """A page is not what the source's rules say it is."""


class TaskError(ThreadmillError):
    """A task cannot be accepted. `reason` is one word, by which dead letters are listed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoreError(ThreadmillError):
    """Redis cannot serve us."""


class StoreUnavailable(StoreError):  # noqa: N818 - reads as the state it is
    """Redis does not answer; it may later."""


class StoreRefused(StoreError):  # noqa: N818
    """Redis answers but must not be used as it is: waiting will not help."""


class StoreUnreadable(StoreError):  # noqa: N818
    """A key holds what Threadmill cannot read: somebody else wrote it, or a release to come."""
