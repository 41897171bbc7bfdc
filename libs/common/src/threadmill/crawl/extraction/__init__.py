"""From a page's bytes to items and hand-downs, by the rules of its source. docs/writing-a-source.md is the manual."""

from threadmill.crawl.extraction.extract import Extract, Handdown
from threadmill.crawl.extraction.extractor import Extractor

__all__ = ["Extract", "Extractor", "Handdown"]
