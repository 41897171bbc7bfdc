"""Work that leaves in the middle of a crawl, by export, and comes back by import: nothing is lost."""

from __future__ import annotations

from pathlib import Path

from end_to_end.pipeline import pipeline
from threadmill.model.stages import DETAIL
from threadmill.ops import transfer
from threadmill.ops.pieces import WAITING
from waiting import wait_for


def test_a_crawl_whose_posts_were_taken_out_and_put_back_is_complete(tmp_path: Path) -> None:
    with pipeline(tmp_path, forum=["--forums", "1", "--pages-per-forum", "1"]) as rig:
        # Given a board that was scanned, and posts that wait, for no collector runs
        rig.start("list", "comment")
        job = rig.submit("list", ["1"]).job
        wait_for(lambda: rig.books("list")["done"] == 1, what="the scan")
        posts = rig.books("detail")["tasks"]
        assert posts > 0
        # When they are taken out, a collector comes, and they are put back
        file = tmp_path / "posts.jsonl"
        with file.open("xb") as target:
            assert transfer.export(rig.deployment, DETAIL, WAITING, target, take=True).taken == posts
        assert rig.books("detail")["tasks"] == 0
        assert rig.job(job).finished
        rig.start("detail")
        with file.open("rb") as content:
            jobs = transfer.check(rig.deployment, DETAIL, content, lambda _: None)
            content.seek(0)
            assert transfer.import_(rig.deployment, DETAIL, content, jobs).restored == {"tasks": posts}
        # Then the crawl is complete, and the books of the job tell both
        books = rig.wait_until_done(job)
        assert rig.check().ok
        assert books.accepted == books.done
        assert books.accepted["detail"] == 2 * posts
