"""Redis: one verb a Lua file, typed Python over them. Synchronous; no Scrapy."""
