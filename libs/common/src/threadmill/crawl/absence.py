"""An absence: what it means that a page is not there, that the site answered 404 or 410."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrapy import Request

from threadmill.store.work import Met


@dataclass(frozen=True, slots=True)
class Absence:
    """By itself: these pages end here, or there never was anything."""

    gone: bool = False
    """What the task's key names is no more."""
    items: Sequence[Mapping[str, Any]] = ()
    """What there is to store about that."""
    met: Met = Met.NO
    """What follows for the board whose pages end here."""
    instead: Request | None = None
    """The page that must be asked before anything can be said."""
