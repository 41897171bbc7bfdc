"""Scrapy components over the store, named as Scrapy names them."""
