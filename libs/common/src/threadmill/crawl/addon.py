"""The add-on that turns a Scrapy project into a Threadmill stage.

    ADDONS = {"threadmill.crawl.addon.Threadmill": 100}

Settings of scrapy-redis are read where their meaning is the same: docs/from-scrapy-redis.md lists them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter

from threadmill.crawl.worker import Worker
from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.store.orders import QUEUE_ORDERS

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

LEAN: dict[str, Any] = {
    # One item at a time through the pipelines: the default of 100 starts 100 asyncio tasks for every response.
    "CONCURRENT_ITEMS": 1,
    # Parses the callback's source code anew for most pages.
    "WARN_ON_GENERATOR_RETURN_VALUE": False,
    "RETRY_ENABLED": False,
    "COOKIES_ENABLED": False,
    "REFERER_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "DOWNLOAD_MAXSIZE": 16 * 1024 * 1024,
    "DOWNLOAD_WARNSIZE": 0,
    "DOWNLOAD_TIMEOUT": 30,
    # Scrapy's own, without the encodings of which nothing tells whether a body was cut short.
    "DEFAULT_REQUEST_HEADERS": {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept-Language": "en",
        "Accept-Encoding": "gzip, deflate",
    },
    "LOG_FORMATTER": "threadmill.crawl.addon.QuietLogFormatter",
    "DOWNLOADER": "threadmill.crawl.downloader.Downloader",
}
"""Defaults of a stage, below the project's own settings. Figures: docs/decisions/0003-lean-scrapy.md."""

_QUEUES = {
    **{name: name for name in QUEUE_ORDERS},
    "PriorityQueue": "priority",
    "FifoQueue": "fifo",
    "LifoQueue": "lifo",
    "SpiderPriorityQueue": "priority",
    "SpiderQueue": "fifo",
    "SpiderStack": "lifo",
}


def _queue_order(name: str) -> str:
    """The queue order that scrapy-redis's queue class stands for."""
    try:
        return _QUEUES[name.rpartition(".")[2]]
    except KeyError:
        raise ConfigError(f"SCHEDULER_QUEUE_CLASS={name} is unknown; use {', '.join(QUEUE_ORDERS)}") from None


FROM_SCRAPY_REDIS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "REDIS_URL": ("redis_url", str),
    "SCHEDULER_QUEUE_CLASS": ("queue_order", _queue_order),
    "MAX_IDLE_TIME_BEFORE_CLOSE": ("idle_close_ms", lambda seconds: int(float(seconds) * 1000)),
}


class QuietLogFormatter(LogFormatter):
    """No line for every page and item: what was done is counted, what went wrong is logged."""

    def __init__(self, crawler: Crawler) -> None:
        # Scrapy's own logger is at DEBUG whatever LOG_LEVEL says; only the handler knows.
        self._pages = logging.getLevelNamesMapping().get(str(crawler.settings["LOG_LEVEL"]).upper(), 0) <= logging.DEBUG

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        return super().crawled(request, response, spider) if self._pages else None

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return None


class Threadmill:
    """Scrapy add-on: sets the components and lean defaults, and holds the crawler's worker."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._worker: Worker | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        components = {
            "SCHEDULER": "threadmill.crawl.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "threadmill.crawl.dupefilter.FleetDupeFilter",
            "STATS_CLASS": "threadmill.crawl.stats.FleetStats",
        }
        for name, value in {**LEAN, **components}.items():
            settings.set(name, value, "addon")
            self._refuse_foreign(settings, name, components.get(name))
        for scheme in ("http", "https"):
            settings["DOWNLOAD_HANDLERS_BASE"][scheme] = "threadmill.crawl.http.HttpDownloadHandler"
        settings["SPIDER_MIDDLEWARES"]["threadmill.crawl.settlement.Settlement"] = 10
        settings["DOWNLOADER_MIDDLEWARES"]["threadmill.crawl.hosts.HostGuard"] = 10
        settings["DOWNLOADER_MIDDLEWARES"]["threadmill.crawl.whole.WholeBodies"] = 595

    def _refuse_foreign(self, settings: BaseSettings, name: str, ours: str | None) -> None:
        """A project that names another component would quietly crawl without a single guarantee."""
        if ours is not None and settings.get(name) != ours:
            raise ConfigError(f"{name} is set to {settings.get(name)}; with Threadmill's add-on, remove that line")

    @property
    def worker(self) -> Worker:
        """The crawler's worker, made when it is first asked for: by then the settings are final."""
        if self._worker is None:
            self._worker = self._make_worker()
        return self._worker

    def _make_worker(self) -> Worker:
        crawler, settings, spider = self._crawler, self._crawler.settings, self._crawler.spider
        config = settings.get("THREADMILL_CONFIG") or Config.from_environment()
        changed: dict[str, Any] = {}
        for name, (field, read) in FROM_SCRAPY_REDIS.items():
            if settings.get(name) is not None:
                changed[field] = read(settings.get(name))
        changed["concurrency"] = settings.getint("CONCURRENT_REQUESTS") or config.concurrency
        config = Config.model_validate({**config.model_dump(), **changed})
        stage = getattr(spider, "stage", None) or Stage(getattr(spider, "name", "spider"), service="")
        lanes = getattr(spider, "lanes", None)
        served = lanes() if lanes else [(Lane(settings.get("BOT_NAME") or "scrapy", 0, config.namespace), None)]
        return Worker(crawler, config, stage, served)


def worker_of(crawler: Crawler) -> Worker:
    """The worker of a crawler that has the add-on."""
    addon = crawler.get_addon(Threadmill)
    if addon is None:
        raise ConfigError("this component belongs to the add-on: ADDONS = {'threadmill.crawl.addon.Threadmill': 100}")
    return addon.worker
