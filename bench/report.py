"""What a benchmark says: a table, its figures, the claims it was made to check, and plots."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.machine import machine
from bench.plots import Plot

FOLDER = Path("data/bench")
SHORT_FOLDER = FOLDER / "short"


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

    def cells(self) -> tuple[str, str, str, str]:
        """For people: what, measured, wanted, and whether it was kept."""
        unit = f" {self.unit}" if self.unit else ""
        sign = "<=" if self.at_most else ">="
        verdict = "kept" if self.kept else "MISSED"
        return self.text, f"{self.value:.4g}{unit}", f"{sign} {self.bound:.4g}{unit}", verdict


CLAIM_COLUMNS = ("claim", "measured", "wanted", "")


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one benchmark.

    columns, rows: the table, cells as they are shown; a first column of names, then figures. A line break in a
    column's title is one on the terminal, and a space in the documentation.
    figures: everything that was measured, as JSON values with units in their names.
    """

    benchmark: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Mapping[str, Any]
    claims: Sequence[Claim] = ()
    plots: Sequence[Plot] = field(default=())

    def document(self) -> dict[str, Any]:
        """The report as JSON values, with all that the documentation shows."""
        return {
            "benchmark": self.benchmark,
            "machine": machine(),
            **self.figures,
            "table": {
                "columns": [" ".join(column.split()) for column in self.columns],
                "rows": [list(row) for row in self.rows],
            },
            "claims": [{**asdict(claim), "kept": claim.kept} for claim in self.claims],
            "plots": [{"name": plot.name, "title": plot.title} for plot in self.plots],
        }

    def publish(self, *, as_json: bool, short: bool = False) -> None:
        """Writes JSON and plots, prints the tables, and with `as_json` the document on standard output.

        The files of a short form go to `SHORT_FOLDER`: its figures must not pass for measurements.
        """
        folder = SHORT_FOLDER if short else FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.document(), indent=1)
        (folder / f"{self.benchmark}.json").write_text(text + "\n")
        for plot in self.plots:
            plot.save(folder)
        console = Console(file=sys.stderr if as_json else sys.stdout, width=None if sys.stdout.isatty() else 120)
        console.print(_table(self.benchmark, self.columns, self.rows))
        print_claims(self.claims, console)
        if as_json:
            print(text)


def print_claims(claims: Sequence[Claim], console: Console) -> None:
    """One line a claim: the figure, its bound, and whether it was kept."""
    if claims:
        console.print(_table("claims", CLAIM_COLUMNS, [claim.cells() for claim in claims]))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.collapse_padding = True
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
