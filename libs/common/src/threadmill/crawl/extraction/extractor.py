"""The extractor: one stage of one source, from bytes to items, hand-downs and the page that follows."""

from collections.abc import Mapping, Sequence
from typing import Any

from threadmill.crawl.extraction.extract import Extract, Handdown
from threadmill.crawl.extraction.plan import SubmitPlan, plan_for
from threadmill.crawl.extraction.reader import Node, Page
from threadmill.crawl.extraction.reading import ReadField
from threadmill.model.errors import ExtractionError
from threadmill.model.source import Source


class Extractor:
    """Addresses and reads the pages of one stage. It holds compiled rules only, so one serves all pages."""

    def __init__(self, source: Source, stage: str) -> None:
        """Raises `SourceError` if there is no such stage, or an expression of it cannot be read."""
        self.source = source
        self.stage = stage
        self.rules = source.rules(stage)
        self._plan = plan_for(source, stage)

    def url(self, key: str, page: int, params: Mapping[str, str]) -> str:
        """The URL of a page; raises `TaskError` (refused-key, refused-param) for values that may not pass."""
        return self.source.base_url + self.rules.path(key, page, params)

    def extract(
        self, body: bytes, *, url: str, encoding: str | None, key: str, page: int, params: Mapping[str, str]
    ) -> Extract:
        """Read one page. `url` is the final one, after redirects; `encoding` is the response's, if known.

        Raises `ExtractionError` if the page is not what the rules say: an error is never an empty result.
        """
        plan = self._plan
        try:
            root = plan.reader.parse(body, encoding)
            this = Page(root, key, page, url, params)
            self._recognise(this)
            if plan.learn:
                this = Page(root, key, page, url, {**params, **_table(plan.learn, root, this)})
            found = plan.rows(root) if plan.rows else [root]
            rows = self._kept(found, this)
            items = self._items(plan.template, rows, this) if plan.template and rows else []
            handdowns = [handdown for row in rows for handdown in _handdowns(plan.row_submits, row, this)]
            handdowns += _handdowns(plan.page_submits, root, this)
            return Extract(items, handdowns, self._following(this, len(found)), len(found), dict(this.params))
        except ValueError as error:
            raise ExtractionError(
                f"{url} is not a {self.stage} page of source {self.source.name} as its rules say: it {error}"
            ) from None

    def _recognise(self, page: Page) -> None:
        """`ValueError` unless this is a page of the kind, the key and the number that were asked for."""
        plan = self._plan
        if plan.expect is not None and plan.expect(page.root) is None:
            raise ValueError(f"has nothing at {self.rules.expect!r}, which `expect` names")
        if plan.identity is not None and (own := _named("identity", plan.identity, page.root, page)) != page.key:
            raise ValueError(f"says that it is {str(own)[:80]!r}, not {page.key!r}")
        if plan.current is not None:
            current = _named("number (paging.current)", plan.current, page.root, page)
            # Where everything fits on one page, there may be no page numbers.
            if current != page.number and not (current is None and page.number == self.rules.paging.first_page):
                raise ValueError(f"says that it is page {current}, not {page.number}")

    def _kept(self, rows: list[Node], page: Page) -> list[Node]:
        skipped = self.rules.skip_first_page_rows
        if skipped and page.number == self.rules.paging.first_page:
            rows = rows[skipped:]
        if drop := self._plan.drop:
            rows = [row for row in rows if not any(dropped(row, page) for dropped in drop)]
        return rows

    def _items(self, template: dict[str, Any], rows: list[Node], page: Page) -> list[dict[str, Any]]:
        """An item for each row."""
        plan = self._plan
        common = template.copy()
        for name, read in plan.page_fields:
            common[name] = _named(name, read, page.root, page)
        items = []
        name = ""
        try:
            for row in rows:
                item = common.copy()
                for name, read in plan.row_fields:
                    item[name] = read(row, page)
                item["extra"] = _table(plan.extra, row, page) if plan.extra else {}
                items.append(item)
        except ValueError as error:
            raise ValueError(
                f"has a {template['type']} (row {len(items) + 1} of {len(rows)}) whose {name} {error}"
            ) from None
        return items

    def _following(self, page: Page, rows: int) -> int | None:
        found: Sequence[str | int] = ()
        if self._plan.paging is not None:
            text = self._plan.reader.text
            found = [each for one in self._plan.paging(page.root) if (each := text(one)) is not None]
        try:
            return self.rules.paging.after(page.number, rows, found)
        except ValueError as error:
            raise ValueError(f"does not say whether another one follows: {error}") from None


def _handdowns(submits: Sequence[SubmitPlan], row: Node, page: Page) -> list[Handdown]:
    """What one row hands down."""
    handdowns = []
    for submit in submits:
        if submit.when is not None and not submit.when(row, page):
            continue
        key = _named(f"key for {submit.stage}", submit.key, row, page)
        parts = [_named(f"version for {submit.stage}", part, row, page) for part in submit.version]
        version = "|".join(part or "" for part in parts) if any(parts) else ""
        handdowns.append(Handdown(submit.stage, key, version, _table(submit.params, row, page)))
    return handdowns


def _table(fields: Sequence[tuple[str, ReadField]], row: Node, page: Page) -> dict[str, Any]:
    """The values that are there, by name."""
    return {name: value for name, read in fields if (value := _named(name, read, row, page)) is not None}


def _named(name: str, read: ReadField, row: Node, page: Page) -> Any:
    try:
        return read(row, page)
    except ValueError as error:
        raise ValueError(f"has a row whose {name} {error}") from None
