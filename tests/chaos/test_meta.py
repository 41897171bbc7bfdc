"""The suite itself under test: with a guarantee broken on purpose, its scenarios must fail, and say why."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from chaos import ledger, test_processes, test_repetition, test_site
from chaos.conftest import SEEDS
from chaos.sabotage import BREAKAGES, broken
from end_to_end.test_item_store import TestAStore as AStore
from item_writer.stores import store_for

REPETITION = test_repetition.test_a_site_that_shows_everything_twice_is_downloaded_once
STOPPED = test_processes.test_a_worker_stopped_past_its_leases_is_fenced
STRICT = test_site.test_a_site_that_asks_to_wait_is_waited_for
KILLED_WRITER = test_site.test_an_item_writer_killed_before_during_and_after_its_transaction_stores_every_row_once


def late_rows(tmp_path: Path) -> None:
    """A test of the store's contract, on SQLite."""
    url = f"sqlite:///{tmp_path}/rows.db"
    store = store_for(url)
    store.open()
    AStore().test_older_data_never_replaces_newer(store, url)


FOUND = {
    "admit leaves the stream entry": (REPETITION, r"work is left|tasks has \d+ entries"),
    "admit does not ask whether it was first": (REPETITION, r"tasks has \d+ entries pending|in vain for job"),
    "settle leaves the entry pending": (REPETITION, r"items has \d+ entries pending in group sql"),
    "settle leaves the entry in the stream": (REPETITION, r"items has \d+ entries$"),
    "commit goes through though the lease is another's": (STOPPED, "in vain for a late commit to be fenced"),
    "every subtask is new": (REPETITION, "downloads beyond the first of a page, 0 allowed"),
    "every follow-up is new": (REPETITION, "downloads beyond the first of a page, 0 allowed"),
    "commit forgets the items": (REPETITION, "posts are not the truth's: .*missing=48"),
    "the job's books do not move": (REPETITION, "job .* does not balance in"),
    "the stage's books do not move": (REPETITION, "list: accepted is not done"),
    "expired leases stay": (STOPPED, "in vain for another worker to do its pages"),
    "a delayed page is dropped": (STRICT, "are not the truth's: .*missing=[1-9]"),
    "items are settled before they are stored": (KILLED_WRITER, "are not the truth's: .*missing=[1-9]"),
    "an older row replaces a newer one": (late_rows, "same ms, earlier"),
}
"""What breaks, a scenario that fails of it, and what it complains of. None of them waits longer than half a minute for
what can never come."""


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
    names = inspect.signature(scenario).parameters
    given = {name: int(SEEDS) if name == "seed" else request.getfixturevalue(name) for name in names}
    # When a scenario of the suite runs; then it fails, and of that
    with ledger.unnoted(), pytest.raises(AssertionError, match=f"(?m){complaint}"):
        scenario(**given)
