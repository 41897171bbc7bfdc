"""The fault suite's seeds and its ledger.

A test that rolls dice takes `seed`, and runs once for each of `CHAOS_SEEDS`; its demo forum has that seed too, so that
the truth and the delays differ. A row of each test is in the table at the end; `CHAOS_REPORT` names a folder to write
it to.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

import end_to_end.pipeline
from chaos.ledger import Ledger, tell
from chaos.seeds import Seeds

SEEDS = "20261120"
"""What `make test` runs with; `make chaos` names several, one of them `drawn`."""
_seeds = pytest.StashKey[Seeds]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "scenario(number): which scenario of the fault suite the test is")
    config.addinivalue_line("markers", "seeds(n): where a seed is drawn, run with n, the others derived from it")
    config.stash[_seeds] = Seeds.parse(os.environ.get("CHAOS_SEEDS", SEEDS))
    os.environ["CHAOS_SEEDS"] = config.stash[_seeds].settled()  # several at a time (-n) must draw the same
    config.pluginmanager.register(Ledger(config.stash[_seeds]), "ledger of the fault suite")


def pytest_report_header(config: pytest.Config) -> str:
    seeds = config.stash[_seeds]
    again = f"; again: make chaos SEEDS={seeds.drawn}" if seeds.drawn else ""
    return f"seeds of the fault suite: {seeds}{again}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        mark, seeds = metafunc.definition.get_closest_marker("seeds"), metafunc.config.stash[_seeds]
        metafunc.parametrize("seed", seeds.many(mark.args[0] if mark else 0))


@pytest.fixture(autouse=True)
def _forum_has_the_seed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "seed" in request.fixturenames:
        given, forum = ["--seed", str(request.getfixturevalue("seed"))], end_to_end.pipeline.demo_forum
        monkeypatch.setattr(end_to_end.pipeline, "demo_forum", lambda folder, options: forum(folder, given + options))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return tell(item, report)
