"""JSON pages, read with JMESPath. Plain names, as nearly all expressions are, become dictionary look-ups."""

import re
from collections.abc import Callable
from typing import Any

import jmespath
import orjson
from jmespath.exceptions import JMESPathError

from threadmill.crawl.extraction.converters import plain_text
from threadmill.crawl.extraction.reader import Node, Read

_SURROGATES = re.compile(
    rb"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
"""What is to be left (an escaped backslash, a whole pair), or half a pair (group 1)."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class JsonReader:
    """See `Reader`."""

    def parse(self, body: bytes, encoding: str | None) -> Node:
        try:
            if encoding and encoding.lower() not in ("utf-8", "utf8", "ascii", "us-ascii"):
                return _without_nul(orjson.loads(body.decode(encoding)))
            root = _loads(body)
        except (orjson.JSONDecodeError, UnicodeDecodeError, LookupError) as error:
            raise ValueError(f"is not JSON: {error}") from None
        # No store can hold U+0000 in text. It hardly ever occurs, and to look for its escape costs little.
        return _without_nul(root) if b"\\u0000" in body else root

    def one(self, expression: str) -> Read:
        if _IDENTIFIER.fullmatch(expression):

            def look_up(node: Node) -> Any:
                return node.get(expression) if isinstance(node, dict) else None

            return look_up
        return self._compiled(expression)

    def many(self, expression: str) -> Callable[[Node], list[Any]]:
        one = self.one(expression)

        def read(node: Node) -> list[Any]:
            found = one(node)
            if found is None:
                return []
            return found if isinstance(found, list) else [found]

        return read

    def rows(self, expression: str) -> Callable[[Node], list[Node]]:
        one = self.one(expression)

        def read(node: Node) -> list[Node]:
            found = one(node)
            if not isinstance(found, list):
                raise ValueError(f"has no list at {expression!r}")
            return found

        return read

    def text(self, found: Any) -> str | None:
        return plain_text(found)

    def scalar(self, found: Any) -> Any:
        return found

    def implied(self, body: bool, final: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return final

    def _compiled(self, expression: str) -> Read:
        try:
            compiled = jmespath.compile(expression)
        except JMESPathError as error:
            raise ValueError(f"is not JMESPath: {' '.join(str(error).split())}") from None

        def search(node: Node) -> Any:
            try:
                return compiled.search(node)
            except JMESPathError as error:
                raise ValueError(f"{expression!r} cannot be applied: {error}") from None

        return search


def _loads(body: bytes) -> Any:
    """Half a surrogate pair, as sites leave it that cut texts short, becomes U+FFFD, as on any screen."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "surrogate" not in error.msg:
            raise
        return orjson.loads(_SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body))


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [_without_nul(element) for element in value]
    if isinstance(value, dict):
        return {name: _without_nul(element) for name, element in value.items()}
    return value
