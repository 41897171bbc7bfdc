"""The documentation's figures come from the last full runs, and from nowhere else."""

import json
from pathlib import Path

from bench.docs import write_docs
from bench.report import Claim, Report

PAGE = """# Performance

<!-- bench machine -->
<!-- end -->

Written by hand.

<!-- bench speed -->
old figures
<!-- end -->

<!-- bench other -->
older figures
<!-- end -->
"""


def _publish(folder: Path) -> None:
    claim = Claim("a | b", 4.0, 3.5, "x")
    report = Report("speed", ("side", "\npages/s"), [("ours", "4.0")], {"runs": []}, [claim])
    document = {**report.document(), "plots": [{"name": "speed", "title": "Speed"}]}
    (folder / "speed.json").write_text(json.dumps(document))
    (folder / "speed.svg").write_text("<svg/>")


def test_blocks_are_written_and_the_rest_is_left(tmp_path: Path) -> None:
    # Given a page, and one benchmark of two that was run
    docs, figures = tmp_path / "docs", tmp_path / "figures"
    docs.mkdir()
    figures.mkdir()
    (docs / "performance.md").write_text(PAGE)
    _publish(figures)
    # When the figures are written
    missing = write_docs(docs, figures)
    text = (docs / "performance.md").read_text()
    # Then its block holds table, claims and plot
    assert "| side | pages/s |\n| --- | ---: |\n| ours | 4.0 |\n" in text
    assert r"| a \| b | 4 x | >= 3.5 x | kept |" in text
    assert "![Speed](img/speed.svg)" in text
    assert (docs / "img/speed.svg").read_text() == "<svg/>"
    assert "| Python |" in text
    assert "old figures" not in text
    # And what was not run, and what was written by hand, stays
    assert missing == ["other"]
    assert "older figures" in text
    assert "Written by hand." in text
    # And a second time changes nothing
    write_docs(docs, figures)
    assert (docs / "performance.md").read_text() == text
