"""A field: where one value comes from and what is done to it. A condition: a question about a field."""

from typing import Any, Self

from pydantic import Field as Key
from pydantic import model_validator

from threadmill.model.source.converters import Converter, Join
from threadmill.model.source.table import Pattern, Table

ORIGINS = ("at", "page", "task", "value")


class Field(Table):
    """One value. Exactly one of `at`, `page`, `task` and `value` says where it comes from.

    `"x"` is short for `{at = "x"}`. Expressions are JMESPath on JSON pages and CSS (with
    `::text` and `::attr(name)`) on HTML pages.
    """

    at: str | None = Key(default=None, min_length=1)
    """An expression on the row; on the page, where the stage has no rows."""
    page: str | None = Key(default=None, min_length=1)
    """An expression on the whole page."""
    task: str | None = Key(default=None, pattern=r"^(key|page|url|params\.[a-z][a-z0-9_]{0,31})$")
    """What the task brought: its key, the page's number, the page's final URL, or a parameter."""
    value: str | int | float | bool | None = None
    """A constant."""
    convert: tuple[Converter, ...] = ()
    default: str | int | float | bool | None = None
    """Stands in for a missing value."""
    required: bool = False
    """A missing value means that the page is not what the rules say."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, body: Any) -> Any:
        return {"at": body} if isinstance(body, str) else body

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if len([name for name in ORIGINS if name in self.model_fields_set]) != 1:
            raise ValueError(f"give exactly one of {', '.join(ORIGINS)}")
        if any(isinstance(step, Join) for step in self.convert[1:]):
            raise ValueError("join must be the first converter: the ones before it would see a single value")
        return self

    @property
    def param(self) -> str | None:
        """The task parameter it reads, if it reads one."""
        return self.task.removeprefix("params.") if self.task and self.task.startswith("params.") else None


TESTS = ("exists", "equals", "matches", "more_than", "less_than")


class Condition(Field):
    """A yes or no about a field. Without a test: is the value there? A missing value passes no other test."""

    exists: bool | None = None
    equals: str | int | float | bool | None = None
    matches: Pattern | None = None
    """A regular expression that must match somewhere in the value's text."""
    more_than: float | None = None
    less_than: float | None = None

    @model_validator(mode="after")
    def _one_test(self) -> Self:
        if len([name for name in TESTS if name in self.model_fields_set]) > 1:
            raise ValueError(f"give at most one of {', '.join(TESTS)}")
        return self
