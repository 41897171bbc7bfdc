"""`python -m bench all` goes on after a benchmark that broke, and tells."""

import argparse
from pathlib import Path

import pytest

from bench import __main__ as command_line
from bench.report import Claim, Report


class Benchmark:
    """Gives a report with one claim, or breaks."""

    def __init__(self, outcome: float | BaseException) -> None:
        self._outcome = outcome
        self.ran = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """None."""

    def measure(self, options: argparse.Namespace) -> Report:
        self.ran = True
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return Report("tried", ("what",), [("it",)], {}, [Claim("as fast as wanted", self._outcome, 1.0)])


def _main(monkeypatch: pytest.MonkeyPatch, folder: Path, benchmarks: dict[str, Benchmark], *arguments: str) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(command_line, "BENCHMARKS", benchmarks)
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    return command_line.main()


@pytest.mark.parametrize("broken", [RuntimeError("worker failed"), SystemExit("No such server")])
def test_all_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: BaseException) -> None:
    benchmarks = {"first": Benchmark(broken), "second": Benchmark(2.0)}
    assert _main(monkeypatch, tmp_path, benchmarks, "all", "--short") == 1
    assert benchmarks["second"].ran


def test_a_signal_ends_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    benchmarks = {"first": Benchmark(SystemExit(143)), "second": Benchmark(2.0)}
    with pytest.raises(SystemExit):
        _main(monkeypatch, tmp_path, benchmarks, "all")
    assert not benchmarks["second"].ran


@pytest.mark.parametrize("benchmark", ["all", "only"])
def test_a_missed_claim_fails_when_strict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, benchmark: str) -> None:
    benchmarks = {"only": Benchmark(0.5)}
    assert _main(monkeypatch, tmp_path, benchmarks, benchmark) == 0
    assert _main(monkeypatch, tmp_path, benchmarks, benchmark, "--strict") == 1


def test_a_short_form_does_not_overwrite_measurements(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    benchmarks = {"only": Benchmark(2.0)}
    _main(monkeypatch, tmp_path, benchmarks, "only", "--short")
    assert not (tmp_path / "data/bench/tried.json").exists()
    assert (tmp_path / "data/bench/short/tried.json").exists()
