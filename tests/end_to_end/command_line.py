"""The operator's command line, run in this process: a command takes milliseconds instead of most of a second."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from threadmill.ops.app import main


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


Operate = Callable[..., Said]


def command_line(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operate:
    """A function that runs `threadmill` with the arguments it is given."""
    for name, value in {"COLUMNS": "160", **environment}.items():
        monkeypatch.setenv(name, value)

    def operate(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["threadmill", *arguments])
        capsys.readouterr()
        try:
            main()
            status: Any = 0
        except SystemExit as end:
            status = end.code or 0
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return operate
