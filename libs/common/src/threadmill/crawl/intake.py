"""The intake: turns tasks that were read from the streams into admissions, and those that cannot be into refusals."""

from __future__ import annotations

import logging
from typing import Any

from scrapy import Request

from threadmill.crawl.exchange import Errand
from threadmill.crawl.hooks import SpiderHooks
from threadmill.crawl.lanes import LaneWork
from threadmill.model.errors import TaskError
from threadmill.model.task import EXPRESS_PRIORITY, Task
from threadmill.store.work import Admission, Entry, Refusal

logger = logging.getLogger(__name__)


class Intake:
    """Asks the spider what each task means; the feed has it carried."""

    def __init__(self, hooks: SpiderHooks) -> None:
        self._hooks = hooks

    def take(self, lane: LaneWork, entries: list[Entry]) -> None:
        """Note what becomes of these entries of the lane's streams."""
        for entry in lane.unknown(entries):
            lane.admitting.add(entry.name)
            source, stage = lane.store.lane.source, lane.store.stage.name
            try:
                task = Task.from_fields(entry.fields, source=source, stage=stage, entry_id=entry.id)
                roots = [(_priority(r, entry), self._hooks.encode(r)) for r in self._hooks.requests_for(task)]
            except TaskError as error:
                logger.warning("a task is parked as a dead letter: %s", error)
                lane.refusals.append(Refusal(entry, error.reason, str(error)))
            except Exception as error:
                logger.exception("requests_for() failed on a task, which is parked")
                lane.refusals.append(Refusal(entry, "requests-for", f"{type(error).__name__}: {error}"))
            else:
                lane.admissions.append(Admission(entry, task.job, roots))
                lane.urgent += len(roots) if entry.express else 0
        lane.stir()

    def errands(self, lane: LaneWork) -> list[Errand]:
        """What was noted, to be said to Redis."""
        errands = []
        for express in (True, False):
            admissions = [a for a in lane.admissions if a.entry.express == express]
            refusals = [r for r in lane.refusals if r.entry.express == express]
            names = {a.entry.name for a in admissions} | {r.entry.name for r in refusals}

            def done(_: Any, names: set[tuple[bool, bytes]] = names) -> None:
                lane.admitting -= names

            if admissions:
                errands.append(Errand(lane.store.admit(admissions, express=express), done))
            if refusals:
                errands.append(Errand(lane.store.refuse(refusals, express=express), done))
        lane.admissions, lane.refusals = [], []
        return errands


def _priority(request: Request, entry: Entry) -> int:
    """Express work comes before all other, whatever its own priority."""
    return EXPRESS_PRIORITY + max(0, request.priority) if entry.express else request.priority
