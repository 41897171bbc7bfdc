"""What a site shows twice, and pages that lead in circles: each is downloaded once, and stored once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.oracle import assert_whole
from end_to_end.pipeline import pipeline

SMALL = ["--forums", "2", "--pages-per-forum", "3", "--posts-per-page", "8", "--mean-comments", "6"]
CIRCLING = """
import sys
from list_scanner import settings
from list_scanner.spider import ListScanner
from threadmill.crawl.service import run_stage
from threadmill.ops.service import run_service

class Circling(ListScanner):
    pages = 0

    def collect(self, page):
        yield from super().collect(page)
        yield from page.subtasks()
        self.pages += 1
        if self.pages < 50:  # so that a crawl that follows them all ends, and can be counted
            for number in (1, 2, 3):
                yield self.request(page.reference.following(number, {}))

sys.exit(run_service("circling_scanner", lambda config: run_stage(config, Circling, settings)))
"""


@pytest.mark.scenario(26)
def test_a_site_that_shows_everything_twice_is_downloaded_once(tmp_path: Path) -> None:
    # Given a list scanner that finds every post twice, and on every list page a link to every list page
    with pipeline(tmp_path, forum=SMALL) as rig:
        (tmp_path / "circling_scanner.py").write_text(CIRCLING)
        path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
        rig.fleet.environment["PYTHONPATH"] = path
        rig.start("detail", "comment")
        rig.fleet.scale("circling_scanner", 1)
        # When it collects, and nothing goes wrong
        job = rig.submit("list", ["1", "2"]).job
        rig.wait_until_done(job)
        # Then no page was downloaded a second time
        assert_whole(rig, job, twice=0)
