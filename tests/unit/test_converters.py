"""Converters, conditions and expressions: from what is on a page to what is stored."""

from typing import Any

import orjson
import pytest

from threadmill.crawl.extraction import Extract, Extractor
from threadmill.crawl.extraction.markup import block_text, parse_fragment
from threadmill.model.errors import ExtractionError, SourceError
from threadmill.model.source import Source


def read(source: Source, stage: str, body: object, **task: Any) -> Extract:
    """Extract a page: bytes, text, or anything that becomes JSON."""
    if isinstance(body, str):
        body = body.encode()
    page = body if isinstance(body, bytes) else orjson.dumps(body)
    known: dict[str, Any] = {"url": "http://127.0.0.1:8000/p", "encoding": None, "key": "1"}
    return Extractor(source, stage).extract(page, **(known | {"page": 1, "params": {}} | task))


def source(stage: dict[str, Any], **more: Any) -> Source:
    rules = {"url": "/{key}", "format": "json", "rows": "rows"} | stage
    body = {"name": "site", "base_url": "http://host", "stages": {"comment": rules}}
    return Source.model_validate(body | more)


def value(field: object, row: object, *, page_format: str = "json", url: str = "http://host/a/b") -> Any:
    """What one field of a comment's `extra` becomes."""
    stage = {"item": "comment", "fields": {"comment_id": {"value": "c"}}, "extra": {"it": field}}
    if page_format == "html":
        stage |= {"format": "html", "rows": "div", "expect": "body"}
        return read(source(stage), "comment", f"<body><div>{row}</div></body>", url=url).items[0]["extra"].get("it")
    return read(source(stage), "comment", {"rows": [row]}, url=url).items[0]["extra"].get("it")


class TestConverters:
    @pytest.mark.parametrize(
        ("field", "row", "expected"),
        [
            ({"value": 7}, {}, 7),
            ({"at": "n"}, {"n": {"deep": [1]}}, {"deep": [1]}),
            ({"at": "n", "default": "-"}, {}, "-"),
            ({"at": "a.b[1]"}, {"a": {"b": [1, 2]}}, 2),
            ({"page": "length(rows)"}, {}, 1),
            ({"task": "page"}, {}, 1),
            ({"at": "t", "convert": ["text"]}, {"t": "  a \n b "}, "a b"),
            ({"at": "t", "convert": ["html_text"]}, {"t": "<p>a<script>x()</script><p>b &lt; c"}, "a\nb < c"),
            ({"at": "n", "convert": ["int"]}, {"n": "1 234"}, 1234),
            ({"at": "n", "convert": [{"kind": "int", "add": -1, "min": 0}]}, {"n": 0}, 0),
            ({"at": "t", "convert": [{"kind": "regex", "pattern": "id=([0-9]+)"}]}, {"t": "x?id=42&y"}, "42"),
            ({"at": "t", "convert": [{"kind": "regex", "pattern": "[0-9]+"}, "int"]}, {"t": "none"}, None),
            ({"at": "t", "convert": [{"kind": "replace", "pairs": {"a": "b", "b": "c"}}]}, {"t": "ab"}, "cc"),
            ({"at": "t", "convert": [{"kind": "join", "separator": "+"}]}, {"t": ["a", None, 2]}, "a+2"),
            ({"at": "t", "convert": ["absolute_url"]}, {"t": "../c?d"}, "http://host/c?d"),
            ({"at": "t", "convert": ["unquote"]}, {"t": "%C3%BC"}, "ü"),
            (
                {"at": "t", "convert": [{"kind": "datetime", "formats": ["unix"]}]},
                {"t": 0},
                "1970-01-01T00:00:00Z",
            ),
            (
                {"at": "t", "convert": [{"kind": "datetime", "formats": ["unix_ms"]}]},
                {"t": "1500"},
                "1970-01-01T00:00:01.500000Z",
            ),
            (
                {
                    "at": "t",
                    "convert": [{"kind": "datetime", "formats": ["%d.%m.%Y %H:%M"], "zone": "Europe/Berlin"}],
                },
                {"t": "01.07.2025 12:00"},
                "2025-07-01T10:00:00Z",
            ),
            (
                {"at": "t", "convert": [{"kind": "datetime", "formats": ["iso"], "zone": "Asia/Tokyo"}]},
                {"t": "2025-07-01T09:00:00"},
                "2025-07-01T00:00:00Z",
            ),
        ],
    )
    def test_json(self, field: dict[str, Any], row: dict[str, Any], expected: object) -> None:
        assert value(field, row) == expected

    @pytest.mark.parametrize(
        ("field", "row", "expected"),
        [
            ("b", "<b> a <i>b</i> </b>", "a b"),
            ("b", "<b> </b>", None),
            ("b::text", "<b>a<i>b</i></b>", "a"),
            ({"at": "b::text", "convert": ["join"]}, "<b>a</b><b> </b><b>c</b>", "a c"),
            ({"at": "a::attr(href)", "convert": ["absolute_url"]}, '<a href=" /x ">', "http://host/x"),
            ({"at": "p", "convert": ["html_text"]}, "<p>a<br>b</p>", "a\nb"),
            ({"at": "p", "convert": ["int"]}, "<p><i></i> 1,024 </p>", 1024),
            ({"page": "div::attr(nothing)"}, "", None),
        ],
    )
    def test_html(self, field: object, row: str, expected: object) -> None:
        assert value(field, row, page_format="html") == expected

    def test_a_chain_is_written_once_and_used_by_name(self) -> None:
        # Given a source with a chain of converters
        stage = {
            "item": "comment",
            "fields": {"comment_id": {"at": "t", "convert": ["last_number"]}},
            "extra": {"next": {"at": "t", "convert": ["last_number", {"kind": "int", "add": 1}]}},
        }
        chains = {"last_number": [{"kind": "regex", "pattern": "[0-9]+$"}]}
        # When a page is read
        extract = read(source(stage, converters=chains), "comment", {"rows": [{"t": "a1b22"}]})
        # Then both fields have gone through it
        assert (extract.items[0]["comment_id"], extract.items[0]["extra"]) == ("22", {"next": 23})

    @pytest.mark.parametrize(
        ("condition", "kept"),
        [
            ({"at": "gone"}, ["2", "3"]),
            ({"at": "gone", "exists": False}, ["1"]),
            ({"at": "n", "equals": 5}, ["1", "3"]),
            ({"at": "n", "more_than": 4}, ["1", "3"]),
            ({"at": "n", "less_than": 5}, ["2", "3"]),
            ({"at": "t", "matches": "^spam"}, ["1", "3"]),
        ],
    )
    def test_rows_are_dropped_by_conditions(self, condition: dict[str, Any], kept: list[str]) -> None:
        rows = [
            {"id": "1", "gone": True, "n": 4, "t": "no spam"},
            {"id": "2", "n": "5", "t": "spam!"},
            {"id": "3", "gone": ""},
        ]
        stage = {"item": "comment", "fields": {"comment_id": "id"}, "drop": [condition]}
        assert [item["comment_id"] for item in read(source(stage), "comment", {"rows": rows}).items] == kept

    @pytest.mark.parametrize(
        ("page_format", "expression", "says"),
        [("json", "a[", "is not JMESPath"), ("html", "a[", "is not CSS")],
    )
    def test_an_expression_that_cannot_be_read_is_named(self, page_format: str, expression: str, says: str) -> None:
        stage = {
            "format": page_format,
            "expect": "x",
            "item": "comment",
            "fields": {"comment_id": expression},
        }
        with pytest.raises(SourceError, match=rf"stages\.comment\.fields\.comment_id .*{says}"):
            Extractor(source(stage), "comment")


class TestMarkup:
    @pytest.mark.parametrize(
        ("markup", "text"),
        [
            ("a<b>b</b>\n<i>c</i>", "ab c"),
            ("<ul><li>a</li><li>b</li></ul>c", "a\nb\nc"),
            ("<div><p>a</p></div><!-- x --><p>b", "a\nb"),
            ("a <style>p{}</style>b", "a b"),
            ("", ""),
        ],
    )
    def test_text_of_markup(self, markup: str, text: str) -> None:
        assert block_text(parse_fragment(markup)) == text

    def test_deep_markup_is_no_problem(self) -> None:
        depth = 1_000
        assert block_text(parse_fragment("<b>" * depth + "x" + "</b>" * depth)).startswith("x")

    def test_a_page_that_cannot_be_read_to_its_end_is_an_error(self) -> None:
        fields = {"comment_id": "p"}
        stage = {"format": "html", "expect": "p", "rows": "p", "item": "comment", "fields": fields}
        with pytest.raises(ExtractionError, match="nested so deeply"):
            read(source(stage), "comment", "<p>1</p>" + "<b>" * 5_000 + "<p>2</p>")

    @pytest.mark.parametrize("encoding", ["gb18030", "shift_jis", "utf-8", None])
    def test_encodings(self, encoding: str | None) -> None:
        stage = {
            "format": "html",
            "expect": "p",
            "rows": "p",
            "item": "comment",
            "fields": {"comment_id": "p::text"},
        }
        body = "<p>日本</p>".encode(encoding or "utf-8")
        assert read(source(stage), "comment", body, encoding=encoding).items[0]["comment_id"] == "日本"
