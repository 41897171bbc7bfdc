"""Every command, and the services, against a real Redis that is too old."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import threadmill.ops.embedded
from chaos.old_redis import old_server
from commands.operator import Operator
from commands.rows import asking
from end_to_end.test_bad_input import SERVICES, run_service
from threadmill.ops.embedded import EmbeddedRedis

TOLD = "is version 5.0.6; 6.2 or newer is needed"


@pytest.fixture
def old_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRedis]:
    program = str(old_server())
    monkeypatch.setattr(threadmill.ops.embedded, "find_server", lambda: program)
    with EmbeddedRedis(tmp_path / "old", options=("--appendonly", "no")) as server:
        yield server


@pytest.mark.chaos
def test_every_command_refuses_an_old_redis(
    old_redis: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a Redis 5.0.6
    threadmill = Operator(monkeypatch, capsys, old_redis.url)
    # When any command is said
    for row in asking():
        answer = threadmill(*row.arguments("/dev/null"))
        # Then it says the version and what is needed, and does nothing
        assert answer.status == row.down, (row.line, answer)
        if row.line == "doctor":
            assert "5.0.6" in answer.out
            assert "promise: none" in answer.out
        else:
            assert TOLD in answer.err, row.line
            assert (answer.out, answer.err.count("\n")) == ("", 1), row.line


@pytest.mark.chaos
@pytest.mark.parametrize("service", SERVICES)
def test_every_service_refuses_an_old_redis(old_redis: EmbeddedRedis, service: str) -> None:
    ended = run_service(service, old_redis.url)
    assert ended.returncode == 3
    assert TOLD in ended.stderr
