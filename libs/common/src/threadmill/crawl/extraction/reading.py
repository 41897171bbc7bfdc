"""A reading: a field rule, compiled into one function for one page format."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urljoin

from threadmill.crawl.extraction.converters import (
    Convert,
    compiled,
    integer,
    plain_text,
    raw,
    utc_time,
)
from threadmill.crawl.extraction.reader import Node, Page, Reader
from threadmill.model.source import Condition, Field
from threadmill.model.source.converters import AbsoluteUrl, DateTime, HtmlText, Join, Text

ReadField = Callable[[Node, Page], Any]
Step = Callable[[Any, Page], Any]
_NOTHING: tuple[Any, ...] = (None, "", [])


class Kind(Enum):
    """What a value must be in the end."""

    TEXT = "text"
    BODY = "body"
    COUNT = "count"
    TIME = "time"
    ANY = "any"


_FINAL: dict[Kind, Convert] = {
    Kind.TEXT: plain_text,
    Kind.BODY: plain_text,
    Kind.COUNT: integer,
    Kind.TIME: utc_time,
    Kind.ANY: raw,
}
"""What makes sure of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A compiled field. `read(node, page)` raises `ValueError` for a wrong or a required but missing one."""

    read: ReadField
    per_page: bool
    """It is the same for all rows of a page."""


def reading(field: Field, reader: Reader, kind: Kind, *, required: bool = False) -> Reading:
    """Compile `field`. Raises `ValueError` for an expression that cannot be read."""
    get = _getter(field, reader)
    default = field.default
    required = (required or field.required) and default is None

    def missing() -> Any:
        if required:
            raise ValueError("is missing")
        return default

    if field.convert:
        steps = _steps(field, reader, kind)

        def read(node: Node, page: Page) -> Any:
            value = get(node, page)
            for step in steps:
                if value is None:
                    break
                value = step(value, page)
            return missing() if value is None or (required and value == "") else value

    else:
        convert = _implied(field, reader, kind)  # nearly all fields, so this is the hot path

        def read(node: Node, page: Page) -> Any:
            value = get(node, page)
            if value is None:
                return missing()
            value = convert(value)
            return missing() if value is None or (required and value == "") else value

    return Reading(read, per_page=field.at is None)


def condition(rule: Condition, reader: Reader) -> Callable[[Node, Page], bool]:
    """Compile a condition. Raises `ValueError` for an expression that cannot be read."""
    if rule.equals is not None:
        wanted = plain_text(rule.equals)
        text = reading(rule, reader, Kind.TEXT).read
        return lambda node, page: bool(text(node, page) == wanted)
    if rule.matches is not None:
        pattern = re.compile(rule.matches)
        text = reading(rule, reader, Kind.TEXT).read
        return lambda node, page: (found := text(node, page)) is not None and pattern.search(found) is not None
    if rule.more_than is not None or rule.less_than is not None:
        least = rule.more_than if rule.more_than is not None else float("-inf")
        most = rule.less_than if rule.less_than is not None else float("inf")
        count = reading(rule, reader, Kind.COUNT).read
        return lambda node, page: (found := count(node, page)) is not None and least < found < most
    # Is it there? Asked of the page as it is, for an icon without text is there.
    there = reading(rule, reader, Kind.ANY).read if rule.convert else _getter(rule, reader)
    expected = rule.exists is not False

    def exists(node: Node, page: Page) -> bool:
        found = there(node, page)
        return (found not in _NOTHING) is expected

    return exists


def _getter(field: Field, reader: Reader) -> ReadField:
    """What finds the value, before any conversion."""
    joined = bool(field.convert) and isinstance(field.convert[0], Join)
    if field.task:
        name = field.param
        if name is not None:
            return lambda node, page: page.params.get(name)
        attribute = {"key": "key", "page": "number", "url": "url"}[field.task]
        return lambda node, page: getattr(page, attribute)
    expression = field.at or field.page
    if expression is None:
        return lambda node, page: field.value
    find = reader.many(expression) if joined else reader.one(expression)
    if field.page:
        return lambda node, page: find(page.root)
    return lambda node, page: find(node)


def _implied(field: Field, reader: Reader, kind: Kind) -> Convert:
    """The conversion of a field that gives none: what its kind needs."""
    if field.task or "value" in field.model_fields_set:
        return _FINAL[kind]
    return reader.implied(kind is Kind.BODY, _FINAL[kind])


def _steps(field: Field, reader: Reader, kind: Kind) -> list[Step]:
    """The conversions of a field that gives some, from what was found to what its kind needs."""
    first, last = field.convert[0], field.convert[-1]
    steps: list[Step] = []
    if not isinstance(first, Text | HtmlText | Join) and (field.at or field.page):
        steps.append(_alone(reader.scalar))
    for rule in field.convert:
        match rule:
            case Join(separator=separator):
                steps.append(_join(separator, reader))
            case AbsoluteUrl():
                steps.append(lambda value, page: urljoin(page.url, str(value).strip()))
            case _:
                steps.append(_alone(compiled(rule, reader.text)))
    if not (kind is Kind.TIME and isinstance(last, DateTime)):
        steps.append(_alone(_FINAL[kind]))
    return steps


def _alone(convert: Convert) -> Step:
    return lambda value, page: convert(value)


def _join(separator: str, reader: Reader) -> Step:
    return lambda values, page: separator.join(filter(None, map(reader.text, values))) or None
