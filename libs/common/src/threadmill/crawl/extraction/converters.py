"""What converters do. Each is compiled once into a function; `ValueError`: it cannot convert this value.

None never reaches a converter: a missing value stays missing.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from lxml import etree  # type: ignore[import-untyped]  # ships no types

from threadmill.crawl.extraction.markup import block_text, parse_fragment
from threadmill.model.source import converters as rules

Convert = Callable[[Any], Any]
_NUMBER = re.compile(r"[+-]?[0-9]+")
_GROUPING = str.maketrans("", "", ", \u00a0\u202f")
_SHOWN = 80
"""Characters of a value that an error message shows."""


def plain_text(value: Any) -> str | None:
    """A value as text: ids are text, whatever a site sends. Lists and objects are none."""
    if value is None or value.__class__ is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"{str(value)[:_SHOWN]!r} is not text")


def integer(value: Any) -> int:
    """A whole number, from one or from its decimal digits."""
    if value.__class__ is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(digits := value.strip().translate(_GROUPING)) and len(digits) < 20:
        return int(digits)
    raise ValueError(f"{str(value)[:_SHOWN]!r} is not a whole number")


def utc_time(value: Any) -> Any:
    """An ISO 8601 time as UTC text with "Z"; one that says no zone is UTC."""
    try:
        parsed = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise ValueError(f"{str(value)[:_SHOWN]!r} is not an ISO 8601 time") from None
    if len(value) == 20 and value[19] == "Z" and value[10] == "T":
        return value  # nearly always: it is what we would write
    return _written(parsed, UTC)


def raw(value: Any) -> Any:
    """The value as it is."""
    return value


def compiled(rule: Any, text: Callable[[Any], str | None]) -> Convert:  # noqa: PLR0911 - one line a kind
    """The function of a converter rule; `text` is the reader's. Join and AbsoluteUrl are in `reading`."""
    match rule:
        case rules.Text():
            return lambda value: " ".join((text(value) or "").split()) or None
        case rules.HtmlText():
            return html_text
        case rules.Integer(add=add, min=least):
            return lambda value: max(integer(value) + add, least) if least is not None else integer(value) + add
        case rules.Regex(pattern=pattern):
            return _regex(pattern)
        case rules.Replace(pairs=pairs):
            return _replace(tuple(pairs.items()))
        case rules.DateTime(formats=formats, zone=zone):
            return _datetime(formats, UTC if zone == "UTC" else ZoneInfo(zone))
        case rules.Unquote():
            return lambda value: unquote(plain_text(value) or "", errors="strict")
        case _:
            raise TypeError(f"no function for the converter {rule!r}")


def html_text(value: Any) -> str | None:
    if isinstance(value, etree._Element):
        return block_text(value) or None
    try:
        return block_text(parse_fragment(plain_text(value) or "")) or None
    except etree.LxmlError as error:
        raise ValueError(f"{str(value)[:_SHOWN]!r} is not markup: {error}") from None


def _regex(pattern: str) -> Convert:
    expression = re.compile(pattern)
    group = min(expression.groups, 1)

    def search(value: Any) -> str | None:
        match = expression.search(plain_text(value) or "")
        return match[group] if match else None

    return search


def _replace(pairs: tuple[tuple[str, str], ...]) -> Convert:
    def replaced(value: Any) -> str:
        text = plain_text(value) or ""
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return replaced


def _datetime(formats: tuple[str, ...], zone: tzinfo) -> Convert:
    # Pages repeat times (to the minute, mostly), and strptime takes longer than reading the rest of a row.
    @lru_cache(maxsize=4096)
    def convert(value: str | int | float) -> str:
        for form in formats:
            try:
                return _written(_parsed(value, form), zone)
            except (ValueError, TypeError, OverflowError, OSError):
                continue
        raise ValueError(f"{str(value)[:_SHOWN]!r} is no time of the form {' or '.join(formats)}")

    return lambda value: convert(value if isinstance(value, int | float) else plain_text(value) or "")


def _parsed(value: str | int | float, form: str) -> datetime:
    if form == "iso":
        return datetime.fromisoformat(str(value))
    if form == "unix":
        return datetime.fromtimestamp(float(value), UTC)
    if form == "unix_ms":
        return datetime.fromtimestamp(float(value) / 1000, UTC)
    return datetime.strptime(str(value), form)  # the zone is added where it is written


def _written(time: datetime, zone: tzinfo) -> str:
    aware = time if time.tzinfo else time.replace(tzinfo=zone)
    return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
