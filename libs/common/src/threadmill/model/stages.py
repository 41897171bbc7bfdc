"""The stages of the pipeline, in order. A new stage is a new line here and a new folder in `services/`."""

from __future__ import annotations

from dataclasses import dataclass

from threadmill.model.errors import TaskError


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: a kind of page, collected by one service.

    `name` is what keys, tasks, metrics and commands say; `service` is the folder and the compose service;
    `hands_to` are the stages it may submit subtasks to.
    """

    name: str
    service: str
    hands_to: tuple[str, ...] = ()
    remembers: bool = True
    """Whether a task that was submitted before is filtered, unless its version moved. A board is scanned every time."""

    @property
    def drains(self) -> bool:
        """Whether other stages hand work to it: then its work makes room, even in a Redis that is full."""
        return any(self.name in stage.hands_to for stage in STAGES.values())


LIST = Stage("list", "list_scanner", hands_to=("detail",), remembers=False)
DETAIL = Stage("detail", "detail_collector", hands_to=("comment",))
COMMENT = Stage("comment", "comment_collector")

STAGES: dict[str, Stage] = {stage.name: stage for stage in (LIST, DETAIL, COMMENT)}


def stage_named(name: str) -> Stage:
    """The stage called `name`; `TaskError("unknown-stage")` if there is none."""
    try:
        return STAGES[name]
    except KeyError:
        raise TaskError("unknown-stage", f"unknown stage {name!r}; known: {', '.join(STAGES)}") from None
