"""Threadmill: a vertically split forum collector, Scrapy microservices over Redis Streams."""

__version__ = "0.1.0"
