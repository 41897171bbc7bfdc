"""The services of one machine as child processes: started, restarted when they die, scaled, stopped in good order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from threadmill.model.errors import ConfigError
from threadmill.model.stages import STAGES
from threadmill.ops.children import start_child

RESTART_S = (0.2, 10.0)
"""First and longest pause before a child that died is started again; it doubles while it dies within a minute."""


@dataclass
class Child:
    """One process of a service."""

    service: str
    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    restart_at: float = 0.0


@dataclass
class Fleet:
    """All child processes; each writes its log to `logs`/<service>-<n>.log."""

    environment: dict[str, str]
    logs: Path
    children: list[Child] = field(default_factory=list)
    restarts: int = 0

    def scale(self, service: str, replicas: int) -> None:
        """Run this many of a service: more are started at once, fewer are asked to finish (SIGTERM)."""
        mine = [child for child in self.children if child.service == service]
        for number in range(len(mine) + 1, replicas + 1):
            child = Child(service, number)
            self._start(child)
            self.children.append(child)
        for child in mine[replicas:]:
            self.children.remove(child)
            if child.process is not None and child.process.poll() is None:
                child.process.terminate()
                self._leaving.append(child)

    def tend(self) -> list[str]:
        """Start again what died; answers a sentence for each death."""
        now, told = time.monotonic(), []
        self._leaving = [child for child in self._leaving if child.process and child.process.poll() is None]
        for child in self.children:
            if child.process is not None and (status := child.process.poll()) is not None:
                child.deaths = 1 if now - child.started > 60 else child.deaths + 1
                first, longest = RESTART_S
                child.restart_at = now + min(longest, first * 2 ** (child.deaths - 1))
                child.process = None
                told.append(f"{child.service} {child.number} {_ended(status)}; see {self._log(child)}")
            if child.process is None and now >= child.restart_at:
                self.restarts += 1
                self._start(child)
        return told

    def stop(self, wait_s: float = 30.0) -> None:
        """SIGTERM to all, stages first in the order of the pipeline; SIGKILL to what does not end in time."""
        alive = [child for child in [*self.children, *self._leaving] if child.process and child.process.poll() is None]
        for child in alive:
            if child.process:
                child.process.terminate()
        deadline = time.monotonic() + wait_s
        for child in alive:
            if child.process:
                try:
                    child.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    child.process.kill()
                    child.process.wait()
        self.children, self._leaving = [], []

    def pids(self, service: str) -> list[int]:
        """The process ids of a service's running replicas."""
        return [c.process.pid for c in self.children if c.service == service and c.process and c.process.poll() is None]

    _leaving: list[Child] = field(default_factory=list)

    def _log(self, child: Child) -> Path:
        return self.logs / f"{child.service}-{child.number}.log"

    def _start(self, child: Child) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        with self._log(child).open("ab") as log:
            environment = {**os.environ, **self.environment}
            command = [sys.executable, "-m", child.service]
            child.process = start_child(command, environment=environment, output=log)
        child.started = time.monotonic()


def parse_replicas(text: str) -> dict[str, int]:
    """Read `list=1,detail=2`."""
    replicas = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        stage, _, number = part.partition("=")
        if stage not in STAGES or not number.isdigit() or int(number) > 64:
            raise ConfigError(f"{part!r} is not <stage>=<replicas>; stages are {', '.join(STAGES)}, replicas 0 to 64")
        replicas[stage] = int(number)
    return replicas


def _ended(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
