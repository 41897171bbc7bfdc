"""Control: what operators want of a worker, as the answers to its lease calls say it, is done here at once."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from scrapy import Request

from threadmill.crawl.downloader import Downloader
from threadmill.crawl.feed import Feed
from threadmill.crawl.lanes import LaneWork
from threadmill.crawl.page import Page
from threadmill.crawl.settler import Settler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Control:
    """Gives back what a paused lane has not begun, and changes how many downloads there are at a time."""

    def __init__(
        self, crawler: Crawler, feed: Feed, settler: Settler, buffer: deque[Request], lanes: list[LaneWork]
    ) -> None:
        self._crawler = crawler
        self._feed = feed
        self._settler = settler
        self._buffer = buffer
        self._lanes = lanes
        self._concurrency = feed.concurrency
        """What the settings say."""
        self._told = dict.fromkeys(lanes, "")

    def heed(self, lane: LaneWork) -> None:
        """Operators, or the stages behind it, want something else of this lane."""
        self._tell(lane)
        if lane.paused:
            self._give_back(lane)
        self._limit()

    def _tell(self, lane: LaneWork) -> None:
        if lane.state != self._told[lane]:
            self._told[lane] = lane.state
            logger.info("%s %s", lane.store.keys.base, _in_words(lane.state))

    def _give_back(self, lane: LaneWork) -> None:
        """Pages in the buffers and those that wait for their turn at the site; those under way are finished."""
        for held in [page for page in self._feed.held.values() if page.lane is lane and not page.begun]:
            self._settler.release(held)
        self._feed.drop_settled()
        left = [request for request in self._buffer if (page := Page.of(request)) is None or not page.settled]
        self._buffer.clear()
        self._buffer.extend(left)
        self._feed.took(len(left))
        if (downloader := self._downloader) is not None:
            downloader.give_back(lane)

    def _limit(self) -> None:
        """As many downloads as the lane that may have most; what each lane says holds for its own site."""
        most = max(lane.limit or self._concurrency for lane in self._lanes)
        if most != self._feed.concurrency:
            logger.info("%d downloads at a time", most)
        self._feed.concurrency = most
        if (downloader := self._downloader) is not None:
            downloader.limit(self._feed.concurrency)

    @property
    def _downloader(self) -> Downloader | None:
        """Ours; a project's own knows nothing of lanes, and begins what the engine gave it."""
        downloader = self._crawler.engine.downloader if self._crawler.engine is not None else None
        return downloader if isinstance(downloader, Downloader) else None


def _in_words(state: str) -> str:
    if state.startswith("held:"):
        return f"leases nothing until {state.removeprefix('held:')} has caught up"
    words = {
        "": "goes on",
        "paused": "is paused: what was not begun is given back",
        "draining": "drains: no new tasks are admitted",
    }
    return words.get(state, f"is {state}")
