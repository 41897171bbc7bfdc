"""The environment in which Spirit runs: its own virtual environment, so that it and Threadmill never meet."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = ("django-spirit==0.14.3", "Django>=5.2,<5.3", "waitress==3.0.2")
_TOOLS = Path(__file__).parents[3] / ".tools" / "bin"
_TIMEOUT_S = 600


class SpiritError(RuntimeError):
    """Spirit cannot be installed, filled or started here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in `folder`."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def ensure(self) -> None:
        """Create it and install what is missing (network, about 10 s); at once if that was done before."""
        stamp = self.folder / "requirements.installed"
        wanted = "\n".join(REQUIREMENTS)
        if self.python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        failure = ""
        for commands in self._ways():
            shutil.rmtree(self.folder, ignore_errors=True)
            failure = next(filter(None, map(_failure, commands)), "")
            if not failure:
                stamp.write_text(wanted)
                return
        raise SpiritError(
            "Spirit cannot be installed: it takes a package index (PyPI or a mirror) and the module venv "
            f"(Debian: apt install python3-venv).\n{failure}"
        )

    def _ways(self) -> list[list[list[str]]]:
        """Ways to install, the quick one first: uv may know no index where pip knows a mirror."""
        ways = [
            [
                [sys.executable, "-m", "venv", str(self.folder)],
                [str(self.python), "-m", "pip", "install", "--quiet", *REQUIREMENTS],
            ]
        ]
        if uv := shutil.which("uv", path=os.pathsep.join((os.environ.get("PATH", ""), str(_TOOLS)))):
            ways.insert(
                0,
                [
                    [uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)],
                    [uv, "pip", "install", "--quiet", "--python", str(self.python), *REQUIREMENTS],
                ],
            )
        return ways


def _failure(command: list[str]) -> str:
    """Run `command`; what it said if it failed, else nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()[-2000:] or done.returncode}"
