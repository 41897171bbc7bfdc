"""What a benchmark says: a table, its figures, the claims it was made to check, and plots."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.plots import Plot

FOLDER = Path("data/bench")


@dataclass(frozen=True, slots=True)
class Claim:
    """A promise and what was measured: `value` is to be at least `bound`, or at most, where `at_most` is set."""

    text: str
    value: float
    bound: float
    unit: str = ""
    at_most: bool = False

    @property
    def kept(self) -> bool:
        """Whether the measurement keeps the promise."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one benchmark.

    columns, rows: the table, cells as they are shown; a first column of names, then figures.
    figures: everything that was measured, as JSON values with units in their names.
    """

    benchmark: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Mapping[str, Any]
    claims: Sequence[Claim] = ()
    plots: Sequence[Plot] = field(default=())

    def document(self) -> dict[str, Any]:
        """The report as JSON values."""
        claims = [{**asdict(claim), "kept": claim.kept} for claim in self.claims]
        return {"benchmark": self.benchmark, **self.figures, "claims": claims}

    def publish(self, *, as_json: bool) -> None:
        """Writes JSON and plots to `FOLDER`, prints the tables, and with `as_json` the document on standard output."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.document(), indent=1)
        (FOLDER / f"{self.benchmark}.json").write_text(text + "\n")
        for plot in self.plots:
            plot.save(FOLDER)
        console = Console(file=sys.stderr if as_json else sys.stdout, width=None if sys.stdout.isatty() else 120)
        console.print(_table(self.benchmark, self.columns, self.rows))
        print_claims(self.claims, console)
        if as_json:
            print(text)


def print_claims(claims: Sequence[Claim], console: Console) -> None:
    """One line a claim: the figure, its bound, and whether it was kept."""
    if claims:
        console.print(_table("claims", ("claim", "measured", "wanted", ""), [_cells(claim) for claim in claims]))


def _cells(claim: Claim) -> tuple[str, str, str, str]:
    unit = f" {claim.unit}" if claim.unit else ""
    sign = "<=" if claim.at_most else ">="
    return claim.text, f"{claim.value:.4g}{unit}", f"{sign} {claim.bound:.4g}{unit}", "kept" if claim.kept else "MISSED"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", no_wrap=bool(at))
    for row in rows:
        table.add_row(*row)
    return table
