"""The rules of one stage: how its pages are addressed, what is on them, and what they hand down."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field as Key
from pydantic import model_validator

from threadmill.model.errors import TaskError
from threadmill.model.items import ITEM_TYPES
from threadmill.model.source.field import Condition, Field
from threadmill.model.source.paging import AnyPaging, Single
from threadmill.model.source.resume import Resume
from threadmill.model.source.table import Pattern, Table
from threadmill.model.source.template import MAX_VALUE, UrlTemplate

Name = Annotated[str, Key(pattern=r"^[a-z][a-z0-9_]{0,31}$")]


class Param(Table):
    """A parameter that tasks of the stage may bring. `"x"` is short for `{pattern = "x"}`."""

    pattern: Pattern = r"[^/\\]+"
    """Must match the whole value."""
    default: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, body: Any) -> Any:
        return {"pattern": body} if isinstance(body, str) else body


class Address(Table):
    """A way to address a page. The first whose key pattern matches and whose parameters are there wins."""

    template: str
    key: Pattern | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, body: Any) -> Any:
        return {"template": body} if isinstance(body, str) else body

    @model_validator(mode="after")
    def _parsed(self) -> Self:
        _ = self.parsed  # a template that cannot be read is reported when the source is loaded
        return self

    @cached_property
    def parsed(self) -> UrlTemplate:
        """The template, read."""
        return UrlTemplate.parse(self.template)


class Submit(Table):
    """A hand-down: a subtask for another stage."""

    stage: Name
    key: Field
    version: tuple[Field, ...] = ()
    """When the joined values move, the subtask is worth doing again. Empty: it is worth doing once."""
    params: dict[Name, Field] = Key(default={})
    when: Condition | None = None
    per: Literal["row", "page"] = "row"
    """One for each row that is kept, or one for the page. A page without rows is its own row."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, body: Any) -> Any:
        if isinstance(body, dict) and isinstance(body.get("version"), str):
            return {**body, "version": [body["version"]]}
        return body


class StageRules(Table):
    """How the pages of one stage are addressed and read."""

    url: tuple[Address, ...] = Key(min_length=1)
    key_pattern: Pattern = r"[A-Za-z0-9_-]{1,64}"
    """Must match the whole key. `\\d` and `\\w` stand for ASCII only."""
    params: dict[Name, Param] = Key(default={})
    format: Literal["json", "html"]
    paging: AnyPaging = Single()
    stop: Literal["known", "limit"] = "known"
    """A scan ends at posts that are known (`margin`), or goes on to the last page."""
    margin: int = Key(default=10, ge=1)
    """Known posts in a row at which a scan ends. Pinned ones at the top and bumped ones in between are fewer."""
    notice_deletions: bool = False
    """Posts that a scan of the whole board does not meet any more are asked for, to learn whether they were deleted."""
    resume: Resume | None = None
    """A key that is collected again begins at the page of its last known row."""
    expect: str | None = Key(default=None, min_length=1)
    """An expression that finds something on every page of this kind, an empty one included."""
    identity: Field | None = None
    """The key that the page says it is of; another one than the task's is an error."""
    learn: dict[Name, Field] = Key(default={})
    """Parameters that the page, or the address it was redirected to, tells."""
    rows: str | None = Key(default=None, min_length=1)
    """The expression that finds the rows; without it the page is one row."""
    skip_first_page_rows: int = Key(default=0, ge=0)
    """Rows at the top of the first page that are not this stage's, e.g. the post above its comments."""
    drop: tuple[Condition, ...] = ()
    """Rows for which any of these holds are left out."""
    item: Literal["post", "comment"] | None = None
    """What a row is stored as; without it, rows are only handed down."""
    fields: dict[str, Field] = Key(default={})
    extra: dict[str, Field] = Key(default={})
    submit: tuple[Submit, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short(cls, body: Any) -> Any:
        if isinstance(body, dict) and isinstance(body.get("url"), str | dict):
            return {**body, "url": [body["url"]]}
        return body

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.item is None and (self.fields or self.extra):
            raise ValueError('fields and extra describe an item: say which by item = "post" or "comment"')
        if self.item is not None:
            known = ITEM_TYPES[self.item].__dataclass_fields__.keys() - {"source", "extra"}
            if unknown := self.fields.keys() - known:
                raise ValueError(f"a {self.item} has no field {', '.join(sorted(unknown))}; use the extra table")
            if self.item == "comment" and "comment_id" not in self.fields:
                raise ValueError("a comment needs fields.comment_id")
        for address in self.url:
            if undeclared := set(address.parsed.params) - self.params.keys():
                raise ValueError(
                    f"declare {', '.join(sorted(undeclared))} in params: the url {address.template} needs it"
                )
        if undeclared := self._read_params() - self.params.keys():
            raise ValueError(f"declare {', '.join(sorted(undeclared))} in params: a field reads it")
        self._recognisable()
        if self.rows is None and (self.drop or self.skip_first_page_rows or self.paging.kind == "until_empty"):
            raise ValueError("drop, skip_first_page_rows and until_empty need rows")
        self._incremental()
        return self

    def _incremental(self) -> None:
        """What looks for news only must be able to tell it from the rest."""
        if self.resume is not None and (self.rows is None or not self.paging.numbered):
            raise ValueError("resume needs rows and pages with numbers: it says on which page the new rows begin")
        if self.notice_deletions and not self.submit:
            raise ValueError("notice_deletions needs submit: only a post that was handed down can be missed")

    def _recognisable(self) -> None:
        """A page of another kind (a login form, an error with status 200) must not pass for an empty one."""
        if self.format == "html" and self.rows is not None and self.expect is None:
            raise ValueError("give expect: HTML without rows looks like any other page")
        if self.rows is None and self.expect is None and self.identity is None:
            found = [field for field in self.fields.values() if field.at or field.page]
            if not any(field.required for field in found):
                raise ValueError("give expect or identity, or make a field required: any page would pass for one")

    def _read_params(self) -> set[str]:
        fields: list[Field] = [*self.fields.values(), *self.extra.values(), *self.learn.values(), *self.drop]
        fields += filter(None, [self.identity, self.paging.current])
        for submit in self.submit:
            fields += [submit.key, *submit.version, *submit.params.values(), *filter(None, [submit.when])]
        return {field.param for field in fields if field.param} | self.learn.keys()

    @cached_property
    def _key(self) -> re.Pattern[str]:
        # ASCII, so that two spellings of one number (full-width digits) are not two tasks.
        return re.compile(self.key_pattern, re.ASCII)

    def check(self, key: str, params: Mapping[str, str]) -> dict[str, str]:
        """The task's parameters with defaults; raises `TaskError` (refused-key, refused-param).

        Parameters that the rules do not declare are left out, so that rules may change while tasks wait.
        """
        if len(key) > MAX_VALUE or not self._key.fullmatch(key):
            raise TaskError(
                "refused-key",
                f"the key {key[:80]!r} does not match the source's key_pattern {self.key_pattern}",
            )
        known = {}
        for name, param in self.params.items():
            value = params.get(name) or param.default
            if not value:
                continue
            if len(value) > MAX_VALUE or not re.fullmatch(param.pattern, value):
                raise TaskError(
                    "refused-param", f"the parameter {name} = {value[:80]!r} does not match {param.pattern}"
                )
            known[name] = value
        return known

    def path(self, key: str, page: int, params: Mapping[str, str]) -> str:
        """Path and query of a page; raises `TaskError` if a value may not pass, or none of the urls fits."""
        known = self.check(key, params)
        for address in self.url:
            template = address.parsed
            if address.key is not None and not re.fullmatch(address.key, key, re.ASCII):
                continue
            if template.params <= known.keys() and (template.paged or page == self.paging.first_page):
                return template.fill(key, page, known)
        needed = "; ".join(address.template for address in self.url)
        raise TaskError("refused-param", f"none of the source's urls fits key {key!r}, page {page}, {known}: {needed}")
