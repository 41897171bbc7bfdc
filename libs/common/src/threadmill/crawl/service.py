"""A stage as a service: one Scrapy process that serves it until it is told to stop."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import structlog
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from threadmill.crawl.spider import StageSpider
from threadmill.model.config import Config
from threadmill.model.errors import StoreUnavailable, ThreadmillError
from threadmill.model.source import Source, configured_sources
from threadmill.store.connection import connect, wait_until_ready

logger = structlog.get_logger()

UNUSED: dict[str, dict[str, None]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # HostGuard does it, redirects included
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,  # the handler knows the setting
    },
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,  # a page reference has its own depth
    },
}
"""Scrapy's middlewares that do nothing for a stage. Each costs a call or a generator a page."""


def run_stage(config: Config, spider: type[StageSpider], settings: ModuleType) -> None:
    """Serve a stage until SIGTERM or SIGINT; raises a `ThreadmillError` when it cannot begin."""
    sources = configured_sources(config)
    url = config.redis_url.get_secret_value()
    client = connect(url)
    wait_until_ready(client, url, wait_ms=config.redis_wait_ms, tell=logger.warning)
    client.close()

    process = AsyncCrawlerProcess(_settings(config, sources, settings))
    quiet_scrapy(config.log_level)
    crawler = process.create_crawler(spider)
    crawling = process.crawl(crawler, sources=sources, partitions=config.partitions, namespace=config.namespace)
    process.start()
    if crawling.done() and not crawling.cancelled() and (error := crawling.exception()) is not None:
        if isinstance(error, ThreadmillError):
            raise error
        raise StoreUnavailable(f"{spider.name} could not begin: {error}")


def _settings(config: Config, sources: list[Source], module: ModuleType) -> Settings:
    settings = Settings()
    settings.set("ADDONS", {"threadmill.crawl.addon.Threadmill": 100})
    for name, middlewares in UNUSED.items():
        settings[name].update(middlewares)
    settings.setmodule(module)
    values: dict[str, Any] = {
        "THREADMILL_CONFIG": config,
        "CONCURRENT_REQUESTS": config.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": config.concurrency,
        "ROBOTSTXT_OBEY": any(source.obey_robots for source in sources),
        "LOG_LEVEL": config.log_level,
        "LOG_INSTALL_ROOT_HANDLER": False,
        "STATS_DUMP": config.log_level == "DEBUG",
    }
    settings.setdict(values, priority="cmdline")
    return settings


def quiet_scrapy(level: str) -> None:
    """Scrapy's own lines only where something is wrong, or at DEBUG. It sets its level for every process object."""
    logging.getLogger("scrapy").setLevel("DEBUG" if level == "DEBUG" else "WARNING")
    logging.getLogger("twisted").setLevel("WARNING")
    # It warns that the Referer middleware is off, which we mean.
    logging.getLogger("scrapy.downloadermiddlewares.redirect").setLevel("ERROR")
