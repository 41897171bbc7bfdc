"""A forum that lives: all that is new is stored, and hardly anything is downloaded for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.growth import INTERFACES, Growth, asked, keep_scanning, ratio, scan, table
from end_to_end.pipeline import pipeline

MOST = 1.3
"""Downloads for each page that had something new."""
FORUM = ["--forums", "10", "--pages-per-forum", "3", "--mean-comments", "10", "--list-order", "active", "--pinned", "2"]
RATES = ["--new-posts-per-minute", "30", "--new-comments-per-minute", "300", "--deletions-per-minute", "10"]


@pytest.mark.chaos
def test_a_growing_forum_is_stored_whole_and_little_is_downloaded_for_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    # Given ten boards that grow: new posts, new comments on any post, and now and then a post that is deleted
    growth = Growth.from_environment()
    until = time.monotonic() + growth.seconds
    forum = [*FORUM, *RATES, "--growth-seconds", str(growth.seconds)]
    with pipeline(tmp_path, forum=forum) as rig:
        rig.start()
        scan(rig, whole=True)
        first = asked(rig)
        asked(rig, "hits/reset")
        # When they are scanned in their rhythm as long as they grow, and once more when they do not
        keep_scanning(rig, growth, until + 2)
        scan(rig, whole=True)
        # Then what is stored is the truth, and what was deleted is marked
        check = rig.check()
        grown = asked(rig)
    with capsys.disabled():
        print(f"\n{growth}\nthe first scan\n{table(first)}\nwhile it grew\n{table(grown)}\n{check.gone} posts gone")  # noqa: T201
    for name in INTERFACES:
        record_property(name, round(ratio(grown, name), 3))
    assert check.ok, check
    assert check.gone > 0
    # And few pages were downloaded that had nothing new
    assert ratio(grown, "total") <= MOST, table(grown)
