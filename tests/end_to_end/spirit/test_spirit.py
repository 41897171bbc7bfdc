"""A real forum, installed from PyPI, is collected without a line of Python for it."""

from pathlib import Path

from rich.console import Console

from .run import MIN_COMMENTS, MIN_TOPICS, collect


def test_every_topic_and_comment_is_stored_as_spirit_has_it(tmp_path: Path) -> None:
    # Given a Spirit with hundreds of topics, long threads, removed comments and text in many scripts
    # When the pipeline collects it by its source definition alone
    report = collect(tmp_path, Console(force_terminal=False))
    # Then every row that Spirit shows is stored once, with its content, and nothing else is
    assert report.posts.expected >= MIN_TOPICS
    assert report.comments.expected >= MIN_COMMENTS
    assert report.clean, str(report)
