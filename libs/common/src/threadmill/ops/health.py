"""Container health checks: is this host's replica of a service at work?"""

from __future__ import annotations

from typing import Any

from threadmill.model.process import host_name
from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment
from threadmill.store.schedule import alive
from threadmill.store.status import SILENCE_MS

WRITER_SILENCE_MS = 30_000


def is_healthy(deployment: Deployment, service: str) -> bool:
    """A stage's worker or a dispatcher of this host has reported lately, or an item writer has read lately."""
    host = host_name()
    if service == "dispatcher":
        dispatchers = (name for lane in deployment.lanes() for name in alive(deployment.client, lane))
        return any(name.startswith(f"{host}-") for name in dispatchers)
    for stage in STAGES.values():
        if stage.service == service:
            seconds, micros = deployment.client.time()
            since = seconds * 1000 + micros // 1000 - SILENCE_MS
            return any(
                worker.decode().startswith(f"{host}-")
                for lane in deployment.lanes()
                for worker in _texts(deployment.client.zrangebyscore(lane.stage(stage.name).workers, since, "+inf"))
            )
    return any(
        consumer["name"].decode().startswith(f"{host}-") and consumer["idle"] < WRITER_SILENCE_MS
        for lane in deployment.lanes()
        for group in _rows(deployment.client.xinfo_groups(lane.items))
        for consumer in _rows(deployment.client.xinfo_consumers(lane.items, group["name"]))
    )


def _texts(reply: Any) -> list[bytes]:
    return list(reply)


def _rows(reply: Any) -> list[dict[str, Any]]:
    return list(reply)
