"""How many replicas a stage shall have: said by an operator, kept in Redis, followed by a running `threadmill up`."""

from __future__ import annotations

from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment

FIELD = "replicas"


def want(deployment: Deployment, replicas: dict[str, int]) -> None:
    """Say how many replicas these stages shall have."""
    for stage, number in replicas.items():
        deployment.client.hset(_control(deployment, stage), FIELD, str(number))


def wanted(deployment: Deployment) -> dict[str, int]:
    """What was said, for the stages of which anything was."""
    said = {stage: deployment.client.hget(_control(deployment, stage), FIELD) for stage in STAGES}
    # What is no number was not said by `want`.
    return {stage: int(number) for stage, number in said.items() if number is not None and number.isdigit()}


def forget(deployment: Deployment) -> None:
    """A new `up` begins with the replicas it is given."""
    for stage in STAGES:
        deployment.client.hdel(_control(deployment, stage), FIELD)


def _control(deployment: Deployment, stage: str) -> str:
    return deployment.lanes()[0].stage(stage).control
