"""How many replicas a stage shall have: said by an operator, kept in Redis, followed by a running `threadmill up`."""

from __future__ import annotations

from threadmill.model.stages import STAGES
from threadmill.ops.deployment import Deployment
from threadmill.store.control import REPLICAS, said, say


def want(deployment: Deployment, replicas: dict[str, int]) -> None:
    """Say how many replicas these stages shall have."""
    for stage, number in replicas.items():
        say(deployment.client, deployment.lanes()[:1], stage, {REPLICAS: str(number)})


def wanted(deployment: Deployment) -> dict[str, int]:
    """What was said, for the stages of which anything was."""
    numbers = {stage: said(deployment.client, deployment.lanes()[0], stage, REPLICAS) for stage in STAGES}
    # What is no number was not said by `want`.
    return {stage: int(number) for stage, number in numbers.items() if number is not None and number.isdecimal()}


def forget(deployment: Deployment) -> None:
    """A new `up` begins with the replicas it is given."""
    for stage in STAGES:
        say(deployment.client, deployment.lanes()[:1], stage, {REPLICAS: None})
