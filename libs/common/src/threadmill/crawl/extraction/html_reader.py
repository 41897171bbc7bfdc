"""HTML pages, read with CSS selectors, which become compiled XPath: no selector objects on the hot path."""

from collections.abc import Callable
from typing import Any

from cssselect import SelectorError
from lxml import etree, html  # type: ignore[import-untyped]  # ships no types
from parsel.csstranslator import HTMLTranslator

from threadmill.crawl.extraction.markup import block_text, inline_text
from threadmill.crawl.extraction.reader import Node, Read


class HtmlReader:
    """See `Reader`. Whatever bytes it gets, a root comes of it: say by `expect` what a page must have."""

    def __init__(self) -> None:
        self._translator = HTMLTranslator()

    def parse(self, body: bytes, encoding: str | None) -> Node:
        try:
            text = body.decode(encoding or "utf-8", errors="replace")
        except LookupError:
            raise ValueError(f"has an encoding nobody knows: {encoding!r}") from None
        # As a browser does: a NUL, at which the parser would stop, is left out.
        clean = text.replace("\x00", "").strip().encode("utf-8", errors="replace")
        parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
        try:
            root = etree.fromstring(clean, parser) if clean else None
        except etree.LxmlError as error:
            raise ValueError(f"is not HTML: {error}") from None
        if root is None:
            raise ValueError("is empty")
        if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in parser.error_log):
            raise ValueError("is nested so deeply that the parser left out the rest of it")
        return root

    def one(self, expression: str) -> Read:
        many = self.many(expression)

        def first(node: Node) -> Any:
            found = many(node)
            return found[0] if found else None

        return first

    def many(self, expression: str) -> Callable[[Node], list[Any]]:
        try:
            xpath = self._translator.css_to_xpath(expression)
        except SelectorError as error:
            raise ValueError(f"is not CSS: {error}") from None
        # Plain strings: smart ones keep the whole tree alive and cost twice as much.
        compiled: Callable[[Node], list[Any]] = etree.XPath(xpath, smart_strings=False)
        return compiled

    def rows(self, expression: str) -> Callable[[Node], list[Node]]:
        many = self.many(expression)

        def read(node: Node) -> list[Node]:
            found = many(node)
            if any(isinstance(row, str) for row in found):
                raise ValueError(f"has text, not elements, at {expression!r}: leave out ::text and ::attr")
            return found

        return read

    def text(self, found: Any) -> str | None:
        if found is None:
            return None
        return (" ".join(found.split()) if isinstance(found, str) else inline_text(found)) or None

    def scalar(self, found: Any) -> Any:
        return self.text(found)

    def implied(self, body: bool, final: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def convert(found: Any) -> Any:
            text = (block_text(found) or None) if body and not isinstance(found, str) else self.text(found)
            return None if text is None else final(text)

        return convert
