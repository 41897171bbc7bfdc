"""Converters: what happens between the text found on a page and the value that is stored.

Each is a table with a `kind`; one without further keys may be written as its kind alone: `convert = ["int"]`.
They are applied in the order written. What they do is in `threadmill.crawl.extraction.converters`.
"""

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, field_validator

from threadmill.model.source.table import Pattern, Table


class Text(Table):
    """The text of an element or a value, white space collapsed to single blanks."""

    kind: Literal["text"] = "text"


class HtmlText(Table):
    """The readable text of markup, with line breaks where its blocks end."""

    kind: Literal["html_text"] = "html_text"


class Integer(Table):
    """A whole number; thousands may be grouped. `add` is added to it; less than `min` becomes `min`."""

    kind: Literal["int"] = "int"
    add: int = 0
    min: int | None = None


class Regex(Table):
    """What `pattern` finds: its first group, or the whole match without one. Nothing found: no value."""

    kind: Literal["regex"] = "regex"
    pattern: Pattern


class Replace(Table):
    """Each key of `pairs` is replaced by its value, in the order written."""

    kind: Literal["replace"] = "replace"
    pairs: dict[str, str] = Field(min_length=1)


class Join(Table):
    """All that the expression found, not only the first, joined by `separator`. Must come first."""

    kind: Literal["join"] = "join"
    separator: str = " "


class AbsoluteUrl(Table):
    """A reference made absolute by the address of its page."""

    kind: Literal["absolute_url"] = "absolute_url"


class Unquote(Table):
    """Percent-escapes decoded (UTF-8), so that a value taken from a URL can be put into one again."""

    kind: Literal["unquote"] = "unquote"


class DateTime(Table):
    """A time as ISO 8601 UTC text. `formats` are tried in turn: "iso", "unix" (s), "unix_ms", or strptime's.

    `zone` (an IANA name) is that of times which do not say theirs.
    """

    kind: Literal["datetime"] = "datetime"
    formats: tuple[str, ...] = Field(default=("iso",), min_length=1)
    zone: str = "UTC"

    @field_validator("zone")
    @classmethod
    def _known(cls, zone: str) -> str:
        if zone != "UTC":  # always known, even where no time zone database is installed
            try:
                ZoneInfo(zone)
            except (KeyError, ValueError, OSError):
                raise ValueError(f"the time zone {zone!r} is not in this machine's database") from None
        return zone


def _short(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Converter = Annotated[
    Annotated[
        Text | HtmlText | Integer | Regex | Replace | Join | AbsoluteUrl | Unquote | DateTime,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_short),
]
