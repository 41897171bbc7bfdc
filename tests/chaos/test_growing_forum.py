"""A forum that lives: all that is new is stored, and hardly anything is downloaded for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from chaos.growth import BOARDS, INTERFACES, Growth, asked, idle, ratio, scans, table
from end_to_end.pipeline import pipeline
from waiting import wait_for

MOST = 1.3
"""Downloads for each page that had something new."""


@pytest.mark.scenario(29)
@pytest.mark.chaos
def test_a_growing_forum_is_stored_whole_and_little_is_downloaded_for_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    # Given ten boards that grow: new posts, new comments on any post, and now and then a post that is deleted
    growth = Growth.from_environment()
    with pipeline(tmp_path, forum=growth.forum, boards=growth.boards_file(tmp_path)) as rig:
        until = time.monotonic() + growth.seconds  # by then it stands still: it serves already
        # And a dispatcher that has each of them scanned, the first time as a whole
        rig.start()
        rig.fleet.scale("dispatcher", 1)
        wait_for(lambda: rig.books("list")["done"] >= 30 and idle(rig), 90, what="the first scan")
        first = asked(rig)
        asked(rig, "hits/reset")
        # When they have grown, and one more whole scan was asked for
        time.sleep(max(0.0, until - time.monotonic()))  # the forum's growth, not a wait for anything
        rig.fleet.scale("dispatcher", 0)
        assert not rig.wait_until_done(rig.submit("list", BOARDS, full=True).job).dead
        wait_for(partial(idle, rig), 60, what="what the dispatcher asked for last")
        # Then what is stored is the truth, and what was deleted is marked
        check, grown, numbers = rig.check(), asked(rig), scans(rig)
    with capsys.disabled():
        print(f"\n{growth}: {numbers} scans of the boards")  # noqa: T201
        print(f"the first scan\n{table(first)}\nwhile it grew\n{table(grown)}\n{check.gone} posts gone")  # noqa: T201
    for name in INTERFACES:
        record_property(name, round(ratio(grown, name), 3))
    assert check.ok, check
    assert check.gone > 0
    # And few pages were downloaded that had nothing new
    assert ratio(grown, "total") <= MOST, table(grown)
