"""A stage as the settings want it: its queue order, its filters, its marks."""

from __future__ import annotations

from threadmill.model.config import Config
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.store.filters import REQUEST_FILTERS, VersionedFilter
from threadmill.store.orders import QUEUE_ORDERS
from threadmill.store.stage import StageStore
from threadmill.store.work import Marks


def configured_store(config: Config, lane: Lane, stage: Stage) -> StageStore:
    """The stage of a lane with the strategies that the settings name."""
    known = VersionedFilter(age_s=config.known_age_s, size=config.known_size, hits=config.known_hits)
    return StageStore(
        lane,
        stage,
        order=QUEUE_ORDERS[config.queue_order],
        request_filter=REQUEST_FILTERS[config.dupefilter],
        task_filter=known,
    )


def configured_marks(config: Config) -> Marks:
    """The marks of backpressure that the settings name."""
    return Marks(config.backlog_high, config.backlog_low, config.items_high, config.items_low)
