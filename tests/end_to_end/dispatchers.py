"""Boards files, dispatchers and what they did, for the tests of the dispatcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from end_to_end.pipeline import Pipeline
from end_to_end.watched_forum import Visit


def boards_file(folder: Path, ids: list[str], **plan: Any) -> Path:
    """A boards file with these boards, all scanned alike; written anew if it is there."""
    file = folder / "boards.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in plan.items()]
    file.write_text("\n".join(["[[board]]", f"ids = {json.dumps(ids)}", *lines, ""]) if ids else "")
    return file


def threadmill(rig: Pipeline, *arguments: str, status: int = 0) -> str:
    """What a command prints on this deployment: on standard output, or, if it is to fail, on standard error."""
    command = [sys.executable, "-m", "threadmill", *arguments]
    environment = {**os.environ, **rig.environment(), "COLUMNS": "200"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status, ended.stderr
    return ended.stderr if status else ended.stdout


def schedule(rig: Pipeline) -> dict[str, int]:
    """How the schedule stands, as `threadmill status --json` says it."""
    body: dict[str, int] = json.loads(threadmill(rig, "status", "--json"))["sources"]["bbs"]["schedule"]
    return body


def board_rows(rig: Pipeline) -> dict[str, dict[str, Any]]:
    """Every board as `threadmill boards list --json` says it."""
    return {row["id"]: row for row in json.loads(threadmill(rig, "boards", "list", "--json"))}


def gaps(visits: list[Visit]) -> list[float]:
    """Seconds between the beginnings of one visit and the next."""
    return [later.came_s - one.came_s for one, later in pairwise(visits)]


def assert_one_at_a_time(visits: list[Visit]) -> None:
    """None begins before the one before it is over."""
    assert all(later.came_s >= one.left_s for one, later in pairwise(visits)), visits
