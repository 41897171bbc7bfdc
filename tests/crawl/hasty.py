"""The plain spider, by a worker that asks for leases and hears operators ten times as often as others."""

from __future__ import annotations

from crawl.spiders import main
from threadmill.crawl import feed

if __name__ == "__main__":
    feed.POLL_S, feed.HEED_EVERY_S = feed.POLL_S / 10, feed.HEED_EVERY_S / 10
    main()
