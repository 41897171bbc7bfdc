"""Seeds of the fault suite: a test that rolls dice takes `seed`, and runs once for each of `CHAOS_SEEDS`."""

from __future__ import annotations

import os
import random

import pytest

SEEDS = "20261120"
"""What `make test` runs with; `make chaos` names several, one of them `drawn`."""
_seeds = pytest.StashKey[list[int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_seeds] = [_seed(text.strip()) for text in os.environ.get("CHAOS_SEEDS", SEEDS).split(",")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", metafunc.config.stash[_seeds])


def _seed(text: str) -> int:
    return random.SystemRandom().randrange(1, 10**8) if text == "drawn" else int(text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say the figures that tests recorded (`record_property`)."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        figures = ", ".join(f"{name} = {value}" for name, value in report.user_properties)
        if figures and report.when == "call":
            terminalreporter.write_line(f"{report.nodeid.rsplit('/', 1)[-1]}: {figures}")
