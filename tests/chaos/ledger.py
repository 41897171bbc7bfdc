"""The ledger of the fault suite: a row for each test that ran, with what the oracle counted in it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

from chaos.seeds import Seeds

LEGEND = {
    "lost": "rows of the truth that are not stored, though no dead letter holds them",
    "unexpected": "stored rows that are not in the truth, or differ from it",
    "duplicated": "stored rows beyond the first of an id",
    "downloaded twice": "downloads beyond the first, over all pages: work done again, which no row shows",
    "recovered": "pages whose leases ran out with a worker that died, stopped or was cut off, and that another took "
    "over (`reclaimed` in the stages' stats, without those parked as `crashed`)",
    "dead": "dead letters and parked items; where there are any, they were expected",
}
WIDTH = 170


class Tally(NamedTuple):
    """What the oracle counted; LEGEND says what each is."""

    lost: int = 0
    unexpected: int = 0
    duplicated: int = 0
    twice: int = 0
    recovered: int = 0
    dead: int = 0


_noted: list[Tally] = []
"""Tallies of the test that runs now."""


def note(tally: Tally) -> None:
    """Keep what the oracle counted for the row of the test that runs now."""
    _noted.append(tally)


def tell(item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
    """Give the report what the ledger wants to know of its test; reports travel between processes, as plain values."""
    report.told = {"row": _row(item), "tallies": [list(tally) for tally in _noted]}  # type: ignore[attr-defined]
    _noted.clear()
    return report


@contextmanager
def unnoted() -> Iterator[None]:
    """What is counted meanwhile does not count: it is broken on purpose."""
    before = list(_noted)
    try:
        yield
    finally:
        _noted[:] = before


@dataclass
class Row:
    """One test with one seed."""

    scenario: int | None
    title: str
    seed: int | None
    test: str
    tally: Tally | None = None
    seconds: float = 0.0
    outcome: str = "pass"
    measured: dict[str, object] = field(default_factory=dict)


class Ledger:
    """A plugin of pytest: collects rows as tests end, shows and writes them."""

    def __init__(self, seeds: Seeds) -> None:
        self._seeds = seeds
        self._rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test ended, setup, call or teardown, here or in another process of this run."""
        if (told := getattr(report, "told", None)) is None:
            return
        row = self._rows.setdefault(report.nodeid, Row(test=report.nodeid, **told["row"]))
        row.seconds += report.duration
        if report.failed:
            row.outcome = "FAIL"
        elif report.skipped and row.outcome == "pass":
            row.outcome = "skipped"
        row.measured |= dict(report.user_properties)
        if told["tallies"]:  # a test may ask the oracle several times
            row.tally = Tally(*map(max, zip(*told["tallies"], *([row.tally] if row.tally else []), strict=True)))

    @property
    def rows(self) -> list[Row]:
        """By scenario, those without a number last."""
        return sorted(self._rows.values(), key=lambda row: (row.scenario is None, row.scenario or 0))

    @property
    def notes(self) -> list[str]:
        """What the table's words mean, and how to repeat it."""
        again = self._seeds.drawn or self._seeds.named[0]
        return [
            f"seeds: {self._seeds}",
            f'a row again: make chaos SEEDS=<its seed> ARGS="-k <its test>"; the drawn seed: make chaos SEEDS={again}',
            *(f"{word}: {meaning}" for word, meaning in LEGEND.items()),
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._rows:
            return
        terminalreporter.write_line(self.text())
        if folder := os.environ.get("CHAOS_REPORT"):
            self.write(Path(folder))
            terminalreporter.write_line(f"written to {folder}/report.md and {folder}/report.json")

    def text(self) -> str:
        """The table for people."""
        table = Table(title="the fault suite", title_justify="left")
        for at, name in enumerate(_HEADS):
            table.add_column(name, justify="left" if at in (1, len(_HEADS) - 1) else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*_cells(row))
        out = io.StringIO()
        console = Console(file=out, width=WIDTH, markup=False)
        console.print(table)
        return out.getvalue() + "\n".join(self.notes)

    def write(self, folder: Path) -> None:
        """`report.md` and `report.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(markdown(self.rows, self.notes), encoding="utf-8")
        body = {
            "seeds": self._seeds.named,
            "drawn": self._seeds.drawn,
            "legend": LEGEND,
            "rows": [asdict(row) | {"tally": row.tally._asdict() if row.tally else None} for row in self.rows],
        }
        (folder / "report.json").write_text(json.dumps(body, indent=2, default=str) + "\n", encoding="utf-8")


def markdown(rows: list[Row], notes: list[str]) -> str:
    """The table as Markdown, a test with several seeds in one row: the least and the most that was counted."""
    heads = ("", "scenario", "seeds", *LEGEND, "seconds", "result", "measured")
    tests: dict[tuple[int | None, str], list[Row]] = {}
    for row in rows:
        tests.setdefault((row.scenario, row.title), []).append(row)
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for (number, title), runs in tests.items():
        tallies = [row.tally for row in runs if row.tally]
        counts = [_range(values) for values in zip(*tallies, strict=True)] or [""] * len(LEGEND)
        names = dict.fromkeys(name for row in runs for name in row.measured)
        measured = (f"{name}: {_range(row.measured[name] for row in runs if name in row.measured)}" for name in names)
        result = next((row.outcome for row in runs if row.outcome != "pass"), "pass")
        seeds = str(len(runs)) if runs[0].seed is not None else ""
        seconds = _range(round(row.seconds) for row in runs)
        cells = [str(number or ""), title, seeds, *counts, seconds, result, ", ".join(measured)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]) + "\n"


def _range(values: Iterable[Any]) -> str:
    given = sorted(values)
    return f"{given[0]:,}" if given[0] == given[-1] else f"{given[0]:,} to {given[-1]:,}"


_HEADS = ("", "scenario", "seed", *LEGEND, "seconds", "result", "measured")


def _row(item: pytest.Item) -> dict[str, Any]:
    mark = item.get_closest_marker("scenario")
    given: dict[str, Any] = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    seed = given.pop("seed", None)
    words = [getattr(value, "__name__", str(value)) for value in given.values()]
    title = _title(getattr(item, "originalname", item.name)) + (f" ({_title(', '.join(words))})" if words else "")
    return {"scenario": mark.args[0] if mark else None, "title": title, "seed": seed}


def _title(name: str) -> str:
    """A test's name in words."""
    return name.removeprefix("test_").replace("_", " ")


def _cells(row: Row) -> list[str]:
    number = "" if row.scenario is None else str(row.scenario)
    seed = "" if row.seed is None else str(row.seed)
    counts = [f"{n:,}" for n in row.tally] if row.tally else [""] * len(Tally._fields)
    measured = ", ".join(f"{name}: {value}" for name, value in row.measured.items())
    return [number, row.title, seed, *counts, f"{row.seconds:.1f}", row.outcome, measured]
