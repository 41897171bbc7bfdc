"""Pure values: keys, stages, tasks, items, settings, errors. Imports neither Redis nor Scrapy."""
