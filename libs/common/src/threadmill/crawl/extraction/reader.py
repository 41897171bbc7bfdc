"""A reader: one page format. It compiles the expressions of the rules, once, into functions on nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Node = Any
"""A place on a page: a JSON value, or an HTML element."""
Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Page:
    """One page being read, and what its task brought."""

    root: Node
    key: str
    number: int
    url: str
    """Where it came from in the end, after redirects."""
    params: Mapping[str, str]


class Reader(Protocol):
    """A page format. Compiling an expression that cannot be read raises `ValueError`."""

    def parse(self, body: bytes, encoding: str | None) -> Node:
        """The root of the page; `ValueError` if it is not of this format."""

    def one(self, expression: str) -> Read:
        """A function from a node to the first thing the expression finds there, or None."""

    def many(self, expression: str) -> Callable[[Node], list[Any]]:
        """A function from a node to all the expression finds there."""

    def rows(self, expression: str) -> Callable[[Node], list[Node]]:
        """As `many`; `ValueError` from the function if there is no place for rows, unlike none."""

    def text(self, found: Any) -> str | None:
        """What `one` or `many` found as text; None for nothing."""

    def scalar(self, found: Any) -> Any:
        """What `one` found as converters take it: no element."""

    def implied(self, body: bool, final: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The conversion of a value for which the rules give none; `final` is what its field needs."""
