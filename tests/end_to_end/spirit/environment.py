"""The environment in which Spirit runs: its own virtual environment, so that it and Threadmill never meet."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = ("django-spirit==0.14.3", "Django>=5.2,<5.3", "waitress==3.0.2")
_INSTALL_TIMEOUT_S = 600


class EnvironmentFailed(RuntimeError):
    """Spirit cannot be installed or run here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in `folder`."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def ensure(self) -> None:
        """Create it and install what is missing (network, about 15 s); at once if that was done before."""
        stamp = self.folder / "requirements.installed"
        wanted = "\n".join(REQUIREMENTS)
        if self.python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        uv = shutil.which("uv")
        if uv:
            self._run([uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)])
            self._run([uv, "pip", "install", "--quiet", "--python", str(self.python), *REQUIREMENTS])
        else:
            self._run([sys.executable, "-m", "venv", str(self.folder)])
            self._run(
                [
                    str(self.python),
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    *REQUIREMENTS,
                ]
            )
        stamp.write_text(wanted)

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentFailed(f"Spirit cannot be installed: {error}") from None
        if done.returncode:
            raise EnvironmentFailed(
                f"Spirit cannot be installed: `{' '.join(command)}` failed; it needs the package index "
                f"(PyPI or a mirror) and Python's venv module.\n{(done.stderr or done.stdout).strip()[-2000:]}"
            )
