"""The command line, and what the services around the three share. No Scrapy."""
