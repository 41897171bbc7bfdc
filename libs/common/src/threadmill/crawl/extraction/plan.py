"""A plan: the rules of one stage, compiled for its page format."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from threadmill.crawl.extraction.html_reader import HtmlReader
from threadmill.crawl.extraction.json_reader import JsonReader
from threadmill.crawl.extraction.reader import Node, Page, Reader
from threadmill.crawl.extraction.reading import Kind, ReadField, Reading, condition, reading
from threadmill.model.errors import SourceError
from threadmill.model.items import ITEM_TYPES
from threadmill.model.source import Field, Source, StageRules, Submit

READERS: dict[str, Callable[[], Reader]] = {"json": JsonReader, "html": HtmlReader}
KINDS = {"body": Kind.BODY, "published_at": Kind.TIME, "views": Kind.COUNT, "comment_count": Kind.COUNT}
REQUIRED = ("post_id", "comment_id")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SubmitPlan:
    """One hand-down, compiled."""

    stage: str
    key: ReadField
    version: tuple[ReadField, ...]
    params: tuple[tuple[str, ReadField], ...]
    when: Callable[[Node, Page], bool] | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything an extractor does to a page, as functions."""

    reader: Reader
    expect: Callable[[Node], Any] | None
    identity: ReadField | None
    current: ReadField | None
    learn: tuple[tuple[str, ReadField], ...]
    rows: Callable[[Node], list[Node]] | None
    drop: tuple[Callable[[Node, Page], bool], ...]
    template: dict[str, Any] | None
    """An item in which nothing is known but its type and source; None: rows are not stored."""
    page_fields: tuple[tuple[str, ReadField], ...]
    """Fields that are read once a page, and those that are read for each row."""
    row_fields: tuple[tuple[str, ReadField], ...]
    extra: tuple[tuple[str, ReadField], ...]
    row_submits: tuple[SubmitPlan, ...]
    page_submits: tuple[SubmitPlan, ...]
    paging: Callable[[Node], list[Any]] | None


def plan_for(source: Source, stage: str) -> Plan:
    """Compile the rules of `stage`. Raises `SourceError` naming the key whose expression cannot be read."""
    rules = source.rules(stage)
    return _Compiler(f"source {source.name}: stages.{stage}", READERS[rules.format]()).plan(source.name, rules)


class _Compiler:
    """Compiles rules and says which of them failed."""

    def __init__(self, where: str, reader: Reader) -> None:
        self._where = where
        self._reader = reader

    def plan(self, source: str, rules: StageRules) -> Plan:
        reader = self._reader
        fields = self._fields(rules)
        expression = rules.paging.reads()
        return Plan(
            reader=reader,
            expect=self._made("expect", reader.one, rules.expect) if rules.expect else None,
            identity=self._read("identity", rules.identity, Kind.TEXT, required=True) if rules.identity else None,
            current=self._read("paging.current", rules.paging.current, Kind.COUNT) if rules.paging.current else None,
            learn=self._table("learn", rules.learn, Kind.TEXT),
            rows=self._made("rows", reader.rows, rules.rows) if rules.rows else None,
            drop=tuple(self._made("drop", condition, rule, reader) for rule in rules.drop),
            template=_template(source, rules.item) if rules.item else None,
            page_fields=tuple((name, field.read) for name, field in fields.items() if field.per_page),
            row_fields=tuple((name, field.read) for name, field in fields.items() if not field.per_page),
            extra=self._table("extra", rules.extra, Kind.ANY),
            row_submits=tuple(self._submit(rule) for rule in rules.submit if rule.per == "row"),
            page_submits=tuple(self._submit(rule) for rule in rules.submit if rule.per == "page"),
            paging=self._made("paging", reader.many, expression) if expression else None,
        )

    def _fields(self, rules: StageRules) -> dict[str, Reading]:
        if rules.item is None:
            return {}
        rule_of = {"post_id": Field(task="key"), **rules.fields}
        if rules.item == "post":
            rule_of.setdefault("url", Field(task="url"))
        return {
            name: self._made(f"fields.{name}", self._reading, rule, KINDS.get(name, Kind.TEXT), name in REQUIRED)
            for name, rule in rule_of.items()
        }

    def _submit(self, rule: Submit) -> SubmitPlan:
        where = f"submit to {rule.stage}"
        return SubmitPlan(
            stage=rule.stage,
            key=self._read(f"{where}: key", rule.key, Kind.TEXT, required=True),
            version=tuple(self._read(f"{where}: version", part, Kind.TEXT) for part in rule.version),
            params=self._table(f"{where}: params", rule.params, Kind.TEXT),
            when=self._made(f"{where}: when", condition, rule.when, self._reader) if rule.when else None,
        )

    def _table(self, key: str, table: dict[str, Field], kind: Kind) -> tuple[tuple[str, ReadField], ...]:
        return tuple((name, self._read(f"{key}.{name}", field, kind)) for name, field in table.items())

    def _read(self, key: str, field: Field, kind: Kind, *, required: bool = False) -> ReadField:
        return self._made(key, self._reading, field, kind, required).read

    def _reading(self, field: Field, kind: Kind, required: bool) -> Reading:
        return reading(field, self._reader, kind, required=required)

    def _made(self, key: str, make: Callable[..., T], *args: Any) -> T:
        try:
            return make(*args)
        except ValueError as error:
            raise SourceError(f"{self._where}.{key} {error}. docs/writing-a-source.md describes every key.") from None


def _template(source: str, item: str) -> dict[str, Any]:
    names = ITEM_TYPES[item].__dataclass_fields__
    return {"type": item, **dict.fromkeys(names), "source": source}
