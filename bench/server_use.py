"""What a Redis server did: its CPU time, what it was asked, bytes; read from the server itself."""

import time
from dataclasses import dataclass, fields
from typing import Any, Self

from redis import Redis

ASKED = ("evalsha", "xreadgroup", "xautoclaim")
"""Commands that workers send and scripts never do, so that each stands for one thing asked for."""


@dataclass(frozen=True, slots=True)
class ServerUse:
    """Counters at one instant, or the difference of two.

    wall_s: seconds on our clock. cpu_us: CPU of the server process, user and system, background threads included,
    children (rewrites of the file) not. asked: commands of `ASKED`. bytes_in, bytes_out: over the network.
    """

    wall_s: float
    cpu_us: float
    asked: int
    bytes_in: int
    bytes_out: int

    @classmethod
    def of(cls, client: Redis) -> Self:
        """The counters now; costs three round trips."""
        # Each section by itself: Redis 6.2 takes only one.
        commands: dict[str, dict[str, Any]] = client.info("commandstats")
        stats: dict[str, int] = client.info("stats")
        cpu: dict[str, float] = client.info("cpu")
        asked = sum(int(commands[f"cmdstat_{name}"]["calls"]) for name in ASKED if f"cmdstat_{name}" in commands)
        return cls(
            time.perf_counter(),
            (cpu["used_cpu_user"] + cpu["used_cpu_sys"]) * 1e6,
            asked,
            stats["total_net_input_bytes"],
            stats["total_net_output_bytes"],
        )

    def __sub__(self, earlier: Self) -> "ServerUse":
        return ServerUse(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))

    @property
    def busy(self) -> float:
        """The share of one core the server used."""
        return self.cpu_us / 1e6 / self.wall_s
