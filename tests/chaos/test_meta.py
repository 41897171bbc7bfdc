"""The suite itself under test: with a guarantee broken on purpose, its scenarios must fail, and say why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import redis

import end_to_end.pipeline
from chaos import ledger, test_processes, test_repetition, test_site
from chaos.conftest import SEEDS
from chaos.sabotage import BREAKAGES, broken
from end_to_end import test_item_writer
from end_to_end.item_writers import Writers
from threadmill.ops.embedded import EmbeddedRedis
from waiting import wait_for

Scenario = Callable[..., None]
REPETITION = test_repetition.test_a_site_that_shows_everything_twice_is_downloaded_once
STOPPED = test_processes.test_a_worker_stopped_past_its_leases_is_fenced
REFUSING = test_site.test_a_site_that_answers_500_to_every_third_request_gives_all_it_has
KILLED_WRITER = test_site.test_an_item_writer_killed_before_during_and_after_its_transaction_stores_every_row_once
LATE_ROW = test_item_writer.test_older_data_delivered_after_newer_does_not_move_the_row
PATIENCE_S = {REPETITION: 10.0, STOPPED: 10.0}
"""Longest wait in a scenario here: enough when nothing is broken, and no more, for some can never end."""
IN_VAIN = "waited .* in vain for "
FOUND = {
    "admit leaves the stream entry": (REPETITION, "work is left|tasks has \\d+ entries"),
    "admit does not ask whether it was first": (REPETITION, "tasks has \\d+ entries pending"),
    "settle leaves the entry pending": (REPETITION, "items has \\d+ entries pending in group sql"),
    "settle leaves the entry in the stream": (REPETITION, "items has \\d+ entries$"),
    "commit goes through though the lease is another's": (STOPPED, IN_VAIN + "a late commit to be fenced"),
    "every subtask is new": (REPETITION, "downloads beyond the first of a page, 0 allowed"),
    "every follow-up is new": (REPETITION, IN_VAIN + "job .* to be done"),
    "commit forgets the items": (REPETITION, "posts are not the truth's: .*missing=48"),
    "commit does not move the job's books": (REPETITION, IN_VAIN + "job .* to be done|does not balance"),
    "commit does not move the stage's books": (REPETITION, "list: accepted is not done"),
    "expired leases stay": (STOPPED, IN_VAIN + "another worker to do its pages"),
    "a delayed page is dropped": (REFUSING, IN_VAIN + "job .* to be done"),
    "items are settled before they are stored": (KILLED_WRITER, "are not the truth's: .*missing=[1-9]"),
    "an older row replaces a newer one": (LATE_ROW, r"\[\('old',\)\] == \[\('new',\)\]"),
}
"""What breaks, the scenario that must fail of it, and what it must complain of."""


@pytest.fixture
def writers(tmp_path: Path, client: redis.Redis, redis_server: EmbeddedRedis) -> Iterator[Writers]:
    made = Writers(tmp_path, redis_server.url)
    yield made
    made.end()


@pytest.mark.scenario(26)
def test_every_breakage_has_a_scenario_that_finds_it() -> None:
    assert FOUND.keys() == BREAKAGES.keys()


@pytest.mark.chaos
@pytest.mark.scenario(26)
@pytest.mark.parametrize("breakage", FOUND)
def test_the_suite_fails_when(breakage: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a guarantee that is broken in all processes
    scenario, complaint = FOUND[breakage]
    broken(breakage, monkeypatch)
    # When a scenario of the suite runs; then it fails, and of that
    with ledger.unnoted(), pytest.raises(AssertionError, match=f"(?m){complaint}"):
        play(scenario, request, monkeypatch)


@pytest.mark.chaos
@pytest.mark.scenario(26)
@pytest.mark.parametrize("scenario", dict.fromkeys(play for play, says in FOUND.values() if IN_VAIN in says))
def test_patience_is_enough_when_nothing_is_broken(
    scenario: Scenario, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given nothing broken; when a scenario that was given up above runs with as little patience, then it passes
    play(scenario, request, monkeypatch)


def play(scenario: Scenario, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a scenario with what it asks for, and with deadlines short enough for one that can never end."""
    module: Any = inspect.getmodule(scenario)
    for place in (module, end_to_end.pipeline):
        if hasattr(place, "wait_for"):
            monkeypatch.setattr(place, "wait_for", _hasty(PATIENCE_S.get(scenario, 20.0)))
    given = {
        name: int(SEEDS) if name == "seed" else request.getfixturevalue(name)
        for name in inspect.signature(scenario).parameters
    }
    scenario(**given)


def _hasty(longest: float) -> Callable[..., Any]:
    @wraps(wait_for)
    def hasty(look: Callable[[], Any], seconds: float = 30.0, *more: Any, **named: Any) -> Any:
        return wait_for(look, min(seconds, longest), *more, **named)

    return hasty
