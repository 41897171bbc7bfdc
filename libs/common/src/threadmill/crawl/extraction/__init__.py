"""From a page's bytes to items and hand-downs, by the rules of its source. See docs/writing-a-source.md."""

from threadmill.crawl.extraction.extract import Extract, Handdown
from threadmill.crawl.extraction.extractor import Extractor

__all__ = ["Extract", "Extractor", "Handdown"]
