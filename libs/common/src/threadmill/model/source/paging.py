"""Paging: how a page says whether another one follows. Each way is a strategy, chosen by `kind`.

The extractor reads what a strategy `reads` from the page and asks it for the page `after`; a strategy knows
nothing of JSON or HTML.
"""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field as Key
from pydantic import model_validator

from threadmill.model.source.field import Field
from threadmill.model.source.table import Pattern, Table


class Paging(Table):
    """What all ways of paging share. Pages are numbered from `first_page`, one by one."""

    first_page: int = Key(default=1, ge=0)
    max_pages: int = Key(default=100_000, ge=1)
    """Pages of one key that are collected at most: the guard against a site whose pages never end."""
    current: Field | None = None
    """The number a page says it has. One that was not asked for is an error: no data of a wrong page."""
    numbered: ClassVar[bool] = True
    ends_by_absence: ClassVar[bool] = False
    """Whether a page that is not found is how the pages end."""

    def reads(self) -> str | None:
        """The expression of which `following` wants all values, in the order of the page."""
        return None

    def following(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        """The page after `page`, which has `rows` rows; None after the last. `ValueError`: it cannot tell."""
        raise NotImplementedError

    def after(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        """`following`, held to `max_pages`."""
        following = self.following(page, rows, found)
        if following is None or following - self.first_page >= self.max_pages:
            return None
        return following

    def is_last_allowed(self, page: int) -> bool:
        """Whether `max_pages` lets no page follow this one."""
        return page + 1 - self.first_page >= self.max_pages


class Single(Paging):
    """There is one page."""

    kind: Literal["single"] = "single"
    numbered: ClassVar[bool] = False

    def following(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        return None


class UntilEmpty(Paging):
    """Pages follow until one has no rows, or is not found."""

    kind: Literal["until_empty"]
    ends_by_absence: ClassVar[bool] = True

    def following(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        return page + 1 if rows else None


class Count(Paging):
    """The page tells how many there are: `pages`, or how many rows: `total`, at `per_page` rows a page."""

    kind: Literal["count"]
    pages: str | None = Key(default=None, min_length=1)
    total: str | None = Key(default=None, min_length=1)
    per_page: int | None = Key(default=None, ge=1)
    assume: int | None = Key(default=None, ge=0)
    """The count where the page tells none; without it, such a page is an error."""

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if (self.pages is None) == (self.total is None) or (self.total is None) != (self.per_page is None):
            raise ValueError("give either pages, or total and per_page")
        return self

    def reads(self) -> str | None:
        return self.pages or self.total

    def following(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        count = _number(found[0]) if found else self.assume
        if count is None:
            raise ValueError(f"nothing at {self.reads()!r} tells the count; set `assume` if that may be so")
        pages = -(-count // self.per_page) if self.per_page else count
        return page + 1 if page + 1 < self.first_page + pages else None


class NextLink(Paging):
    """The page links to the next one: of the numbers `pattern` finds in `links`, the smallest above its own.

    So it works for a lone "next" link, for a row of numbered ones, and in every language.
    """

    kind: Literal["next_link"]
    links: str = Key(min_length=1)
    pattern: Pattern = "[0-9]+"

    def reads(self) -> str | None:
        return self.links

    def following(self, page: int, rows: int, found: Sequence[str | int]) -> int | None:
        numbers = (_found(self.pattern, link) for link in found)
        return min((number for number in numbers if number is not None and number > page), default=None)


def _number(text: str | int) -> int:
    if isinstance(text, int):
        return text
    number = _found("[0-9]+", text)
    if number is None:
        raise ValueError(f"{text!r} is not a number")
    return number


def _found(pattern: str, text: str | int) -> int | None:
    """The last group of the match as a number; None if there is no match."""
    match = re.search(pattern, str(text))
    return int(match[match.re.groups]) if match else None


AnyPaging = Annotated[Single | UntilEmpty | Count | NextLink, Key(discriminator="kind")]
