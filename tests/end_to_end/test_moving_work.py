"""Work that leaves in the middle of a crawl, by export, and comes back by import: nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from end_to_end.pipeline import Pipeline, pipeline
from waiting import wait_for


def threadmill(rig: Pipeline, *arguments: str) -> str:
    """Run the operator's command line on this deployment."""
    command = [sys.executable, "-m", "threadmill", *arguments]
    environment = {**os.environ, **rig.environment()}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_crawl_whose_posts_were_taken_out_and_put_back_is_complete(tmp_path: Path) -> None:
    with pipeline(tmp_path, forum=["--forums", "2", "--pages-per-forum", "2"]) as rig:
        # Given boards that were scanned, and posts that wait, for no collector runs
        rig.start("list")
        job = rig.submit("list", ["1", "2"]).job
        wait_for(
            lambda: rig.books("list")["done"] and not rig.job(job).open - rig.books("detail")["tasks"], what="scans"
        )
        posts = rig.books("detail")["tasks"]
        assert posts > 0
        # When they are taken out, the collectors come, and they are put back
        file = str(tmp_path / "posts.jsonl")
        threadmill(rig, "export", "detail", file, "--take", "--yes")
        assert rig.books("detail")["tasks"] == 0
        assert rig.job(job).finished
        rig.start("detail", "comment")
        assert f"{posts} tasks and pages imported" in threadmill(rig, "import", "detail", file)
        # Then the crawl is complete, and the books of the job tell both
        books = rig.wait_until_done(job)
        assert rig.check().ok
        assert books.accepted == books.done
        assert books.accepted["detail"] == 2 * posts
