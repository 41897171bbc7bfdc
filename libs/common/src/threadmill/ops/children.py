"""Child processes that do not outlive us, even if we are killed."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

_PR_SET_PDEATHSIG = 1


def start_child(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | int = subprocess.DEVNULL,
    give_input: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own (Ctrl-C reaches us alone), ended by SIGTERM when we die (Linux only)."""
    return subprocess.Popen(  # noqa: S603 - commands are ours
        command,
        env=environment,
        stdin=subprocess.PIPE if give_input else subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - we start no threads before
    )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
