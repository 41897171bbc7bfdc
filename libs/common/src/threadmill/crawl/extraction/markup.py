"""Readable text out of markup."""

import re
from collections.abc import Iterator

from lxml import etree, html  # type: ignore[import-untyped]  # ships no types

_BLOCKS = frozenset(
    re.findall(
        "[a-z0-9]+",
        """address article aside blockquote center dd details div dl dt fieldset figcaption figure footer form
        h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tbody td tfoot th thead tr ul""",
    )
)
_UNSEEN = frozenset(("script", "style", "template", "noscript", "head"))


def inline_text(element: etree._Element) -> str:
    """All text of `element` on one line."""
    return " ".join("".join(piece or " " for piece, _ in _pieces(element)).split())


def block_text(element: etree._Element) -> str:
    """The text of `element`, one line for each block or line of it; only `pre` keeps its own white space."""
    lines = [""]
    for piece, kept in _pieces(element):
        if not piece:
            lines.append("")
        elif kept:
            first, *others = piece.split("\n")
            lines[-1] += first
            lines += others
        else:
            words = " ".join(piece.split())
            before = piece[:1].isspace() and not lines[-1][-1:].isspace() and lines[-1]
            lines[-1] += f"{' ' if before else ''}{words}{' ' if words and piece[-1:].isspace() else ''}"
    return "\n".join(line.rstrip() for line in lines if line.strip())


def parse_fragment(markup: str) -> etree._Element:
    """An element that holds the fragment."""
    return html.fragment_fromstring(
        markup.replace("\x00", ""), create_parent="div", parser=html.HTMLParser(huge_tree=True)
    )


def _pieces(element: etree._Element) -> Iterator[tuple[str, bool]]:
    """Pieces of text in order, and whether their white space counts; an empty one ends a line."""
    preformatted = unseen = 0
    for event, node in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        tag = node.tag if event in ("start", "end") else None
        if event == "start":
            preformatted += tag == "pre"
            unseen += tag in _UNSEEN
            if tag in _BLOCKS:
                yield "", False
            if node.text and not unseen:
                yield node.text, preformatted > 0
            continue
        if event == "end":
            preformatted -= tag == "pre"
            unseen -= tag in _UNSEEN
            if tag in _BLOCKS or tag == "br":
                yield "", False
        if node is not element and node.tail and not unseen:
            yield node.tail, preformatted > 0
