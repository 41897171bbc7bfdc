"""Figures for the documentation: `python -m bench docs` writes tables and plots of the last full runs into docs/.

A page holds `<!-- bench NAME -->` and `<!-- end -->`; what is between them is written here, out of
`data/bench/NAME.json`, and by nobody else. NAME is a benchmark, or `machine` for what all was measured on. A
benchmark that was not run keeps what it has. Plots are copied to `docs/img/`.
"""

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.child import ROOT
from bench.progress import say
from bench.report import CLAIM_COLUMNS, FOLDER, Claim

DOCS = ROOT / "docs"
_BLOCK = re.compile(r"(<!-- bench ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MACHINE = "machine"


def write_docs(docs: Path = DOCS, figures: Path = FOLDER) -> list[str]:
    """Writes every block of every page; gives the names of the benchmarks that have no full run."""
    documents = {path.stem: json.loads(path.read_text()) for path in sorted(figures.glob("*.json"))}
    missing: set[str] = set()
    for page in sorted(docs.glob("*.md")):
        text = page.read_text()

        def block(match: re.Match[str]) -> str:
            begin, name, end = match.groups()
            if name == _MACHINE and documents:
                return f"{begin}{machines(documents)}{end}"
            if name in documents:
                return f"{begin}{section(documents[name])}{end}"
            missing.add(name)
            return match[0]

        written = _BLOCK.sub(block, text)
        if written != text:
            page.write_text(written)
            say(f"Written: {page}")
    (docs / "img").mkdir(exist_ok=True)
    for document in documents.values():
        for plot in document["plots"]:
            shutil.copy(figures / f"{plot['name']}.svg", docs / "img")
    return sorted(missing)


def section(document: dict[str, Any]) -> str:
    """One benchmark: where and when, its table, its claims, its plots."""
    name, machine, table = document["benchmark"], document["machine"], document["table"]
    parts = [f"`make bench BENCH={name}`, {machine['date']}, commit {machine.get('commit', 'unknown')}"]
    parts.append(_table(table["columns"], table["rows"]))
    if document["claims"]:
        parts.append(_table(CLAIM_COLUMNS, [_claim(claim).cells() for claim in document["claims"]]))
    parts += [f"![{plot['title']}](img/{plot['name']}.svg)" for plot in document["plots"]]
    return "\n\n".join(parts) + "\n"


def machines(documents: dict[str, dict[str, Any]]) -> str:
    """What all was measured on: one value each, or all that differ."""
    names = dict.fromkeys(name for document in documents.values() for name in document["machine"])
    values = {
        name: dict.fromkeys(document["machine"].get(name, "-") for document in documents.values()) for name in names
    }
    return _table(("", "measured with"), [(name, ", ".join(found)) for name, found in values.items()]) + "\n"


def _claim(values: dict[str, Any]) -> Claim:
    return Claim(**{name: value for name, value in values.items() if name != "kept"})


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
