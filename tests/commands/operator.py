"""The operator of the tests: says commands in this process, on the Redis of the test, and hears what they answer."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from threadmill.ops.app import main
from threadmill.ops.commands import common


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Operator:
    """Calls `threadmill …` as the shell would, but for the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self._patch = monkeypatch
        self._capsys = capsys
        monkeypatch.setenv("THREADMILL_REDIS_URL", url)
        monkeypatch.setenv("THREADMILL_SOURCES", "sources/bbs.toml")
        # The consoles read COLUMNS once, when they are made.
        for console in (common.out, common.err):
            monkeypatch.setattr(console, "_width", 200)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Answer:
        self._patch.setattr(sys, "argv", ["threadmill", *arguments])
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self._capsys.readouterr()
        return Answer(int(ended.value.code or 0), printed.out, printed.err)

    def set(self, name: str, value: str) -> None:
        """Another setting for the commands that follow."""
        self._patch.setenv(name, value)
