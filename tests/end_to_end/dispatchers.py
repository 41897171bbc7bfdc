"""Boards files for the tests of the dispatcher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def boards_file(folder: Path, ids: list[str], **plan: Any) -> Path:
    """A boards file with these boards, all scanned alike; written anew if it is there."""
    file = folder / "boards.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in plan.items()]
    file.write_text("\n".join(["[[board]]", f"ids = {json.dumps(ids)}", *lines, ""]))
    return file
