"""Scrapy settings of this service alone. What is not set here is lean and safe (threadmill.crawl.addon.LEAN)."""

BOT_NAME = "detail_collector"
