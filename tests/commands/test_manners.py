"""What every command does as a command of a shell should: help, completion, pipes, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from typer.core import TyperGroup
from typer.main import get_command

from commands.operator import Operator
from commands.rows import names
from store.workshop import Workshop
from threadmill.model.config import Config
from threadmill.ops.app import PANELS, app
from threadmill.ops.embedded import EmbeddedRedis
from waiting import wait_for

THREADMILL = [str(Path(sys.executable).parent / "threadmill")]


def test_every_command_is_under_a_heading_and_has_an_example() -> None:
    shown = {name.split()[0] for name in names()}
    assert sorted(shown) == sorted(name for panel in PANELS.values() for name in panel)
    without = [name for name in names() if name not in ("version", "health") and "Example: " not in epilog(name)]
    assert without == []


def test_the_manual_has_every_command_and_every_setting() -> None:
    manual = Path("docs/operations.md").read_text(encoding="utf-8")
    settings = [f"THREADMILL_{name.upper()}" for name in Config.model_fields]
    commands = [f"threadmill {name.split()[0]}" for name in names()]
    assert [each for each in (*settings, *commands) if each not in manual] == []


def epilog(name: str) -> str:
    command = get_command(app)
    for word in name.split():
        assert isinstance(command, TyperGroup)
        command = command.commands[word]
    return command.epilog or ""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pause ", {"list", "detail", "comment"}),
        ("trace 1 --stage d", {"detail"}),
        ("rate ", {"bbs"}),
        ("dead list detail --source ", {"bbs"}),
        ("peek detail --queue de", {"delayed"}),
        ("purge detail --queue wa", {"waiting"}),
        ("export detail --queue a", {"all"}),
        ("reque", {"requeue"}),
    ],
)
def test_the_shell_completes(
    typed: str, offered: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a shell that asks, as typer's completion script does
    monkeypatch.setenv("THREADMILL_SOURCES", "sources/bbs.toml")
    monkeypatch.setenv("COMP_WORDS", f"threadmill {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(f"threadmill {typed}".split(" ")) - 1))
    monkeypatch.setenv("_THREADMILL_COMPLETE", "complete_bash")
    # When the command is asked
    with pytest.raises(SystemExit):
        app(prog_name="threadmill")
    # Then it offers what fits
    assert set(capsys.readouterr().out.split()) == offered


def test_a_reader_that_goes_away_is_no_error(shop: Workshop, redis_server: EmbeddedRedis) -> None:
    # Given more to show than a pipe holds
    job = "a-job-with-a-long-name-0123456789"
    shop.submit(*(str(at) for at in range(2_000)), job=job)
    # When only the first lines are read
    for line in ("peek detail --limit 2000", "export detail"):
        with running(line, redis_server.url) as command:
            assert command.stdout
            command.stdout.readline()
            first = command.stdout.readline()
            command.stdout.close()
            error = command.stderr.read() if command.stderr else b""
            # Then the command ends without a word
            assert (command.wait(20), error) == (1, b""), line
        # And a row is a line, its ids whole
        assert job.encode() in first, line


def test_ctrl_c_ends_a_command_without_a_traceback(
    shop: Workshop, client: redis.Redis, redis_server: EmbeddedRedis
) -> None:
    shop.submit("1", job="J")
    before = {each["id"] for each in client.client_list()}
    with running("job J --wait", redis_server.url) as command:
        wait_for(lambda: {each["id"] for each in client.client_list()} - before, what="the command to be at work")
        command.send_signal(signal.SIGINT)
        assert b"Traceback" not in command.communicate(timeout=20)[1]
    assert command.returncode == 130


def test_ctrl_c_is_how_watching_ends(shop: Workshop, redis_server: EmbeddedRedis) -> None:
    with running("status --watch --json", redis_server.url) as command:
        assert command.stdout
        command.stdout.readline()
        command.send_signal(signal.SIGINT)
        assert command.communicate(timeout=20)[1] == b""
    assert command.returncode == 0


@contextmanager
def running(line: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process of its own, that hears Ctrl-C though whoever runs the tests may not; killed at the end."""
    settings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    settings |= {"THREADMILL_REDIS_URL": url, "THREADMILL_SOURCES": "sources/bbs.toml"}
    command = subprocess.Popen(
        [*THREADMILL, *line.split()],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    with command:
        try:
            yield command
        finally:
            command.kill()


def test_a_question_is_answered_no_where_nobody_can_answer(threadmill: Operator, shop: Workshop) -> None:
    shop.submit("1")
    answer = threadmill("purge", "detail")
    assert answer.status == 2
    assert "say --yes" in answer.err
    assert shop.books.tasks == 1
