"""What one page gave."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Handdown:
    """A subtask a page asks another stage to do. `version` is empty where the rules give none."""

    stage: str
    key: str
    version: str
    params: dict[str, str]


@dataclass(frozen=True, slots=True)
class Extract:
    """Everything one page gave, in the order of the page."""

    items: list[dict[str, Any]]
    """Posts and comments, ready for JSON; `type` says which."""
    handdowns: list[Handdown]
    next_page: int | None
    """The number of the page that follows; None after the last."""
    rows: int
    """Rows there were, those included that are not this stage's."""
    params: dict[str, str]
    """The task's parameters and what this page taught: what its follow-up pages are asked with."""
