"""A URL template: the only way from a task to a URL.

Values are put in percent-encoded. A value can never become more than the one path segment or query value it
stands for: it cannot hold a slash or backslash in a path, be made of dots only, be empty or hold
control characters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from threadmill.model.errors import TaskError

MAX_VALUE = 256
"""Longest key or parameter in a URL, characters."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?:params\.)?([a-z][a-z0-9_]{0,31})")
_LITERAL = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A path and query with places for `{key}`, `{page}` and parameters (`{slug}` or `{params.slug}`)."""

    text: str
    literals: tuple[str, ...]
    places: tuple[tuple[str, bool], ...]
    """Between the literals: the name, and whether it stands in the path."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template; raises `ValueError` saying what is wrong with it."""
        pieces = _PLACEHOLDER.split(text)
        literals, names = pieces[::2], pieces[1::2]
        if not text.startswith("/") or text.startswith("//"):
            raise ValueError(f"the url {text!r} must begin with one slash: the host comes from base_url")
        if not all(_LITERAL.fullmatch(literal) for literal in literals):
            raise ValueError(f"the url {text!r} holds characters to be percent-encoded, or a lone brace")
        places = []
        for index, name in enumerate(names):
            if not (match := _NAME.fullmatch(name)):
                raise ValueError(f"the url {text!r} has {{{name}}}: write {{key}}, {{page}} or a parameter's name")
            places.append((match[1], "?" not in "".join(literals[: index + 1])))
        return cls(text, tuple(literals), tuple(places))

    @property
    def params(self) -> frozenset[str]:
        """The parameters it needs."""
        return frozenset(name for name, _ in self.places) - {"key", "page"}

    @property
    def paged(self) -> bool:
        """Whether it can name other pages than the first."""
        return any(name == "page" for name, _ in self.places)

    def fill(self, key: str, page: int, params: Mapping[str, str]) -> str:
        """The path and query; `TaskError` (refused-key, refused-param) for a value that must not be in it."""
        parts = [self.literals[0]]
        for (name, in_path), literal in zip(self.places, self.literals[1:], strict=True):
            value = key if name == "key" else str(page) if name == "page" else params[name]
            parts += (encode(name, value, in_path=in_path), literal)
        return "".join(parts)


def encode(name: str, value: str, *, in_path: bool) -> str:
    """`value` as it stands in a URL; `TaskError` if it must not."""
    if value.isascii() and value.isalnum() and len(value) <= MAX_VALUE:  # nearly always
        return value
    if not value or len(value) > MAX_VALUE:
        reason = f"must have 1 to {MAX_VALUE} characters, not {len(value)}"
    elif _CONTROL.search(value):
        reason = "holds control characters"
    elif not value.strip("."):
        reason = "is made of dots only"
    elif in_path and ("/" in value or "\\" in value):
        reason = "holds a slash"
    else:
        return quote(value, safe="")
    kind = "refused-key" if name == "key" else "refused-param"
    raise TaskError(kind, f"the {name} {value[:80]!r} cannot stand in a URL: it {reason}")
