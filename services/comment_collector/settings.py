"""Scrapy settings of this service alone; docs/operations.md tells what is worth changing. Unset ones are lean and safe."""

BOT_NAME = "comment_collector"
