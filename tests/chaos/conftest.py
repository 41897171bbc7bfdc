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
