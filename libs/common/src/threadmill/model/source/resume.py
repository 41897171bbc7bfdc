"""Resuming: rows that were collected before are left alone, where a site's paging lets one begin behind them."""

from pydantic import Field as Key

from threadmill.model.source.table import Table


class Resume(Table):
    """For a stage whose new rows come last, after all rows there were.

    The version tells how many rows a key has. So the version known before says on which page the news begins, and the
    version now how many rows there must be in the end.
    """

    per_page: int = Key(ge=1)
    """Rows of a full page. If the site's pages are larger, runs notice it and begin again at the first page."""
    part: int = Key(default=1, ge=1)
    """Which of the hand-down's `version` fields is the number of rows; the first is 1."""
    overlap: int = Key(default=0, ge=0)
    """So many known rows are looked at again, for sites where rows vanish and later ones move up."""

    def rows(self, version: str) -> int:
        """How many rows a version speaks of; 0 if it does not say."""
        parts = version.split("|")
        count = parts[self.part - 1] if self.part <= len(parts) else ""
        return int(count) if count.isascii() and count.isdecimal() and len(count) <= 15 else 0

    def pages_known(self, before: str, now: str) -> int:
        """Pages at the beginning that hold nothing new, by the versions known before and now.

        0 if either is not known, and where there are not more rows than before: rows have vanished, so places moved.
        """
        known, rows = self.rows(before), self.rows(now)
        return max(known - self.overlap, 0) // self.per_page if known < rows else 0

    def falls_short(self, pages_before: int, rows: int, expected: int) -> bool:
        """Whether a run that ends `pages_before` pages behind the first, with `rows` rows, has passed over some.

        It has if fewer rows than `expected` fit: then the pages it began behind were larger than `per_page`.
        """
        return pages_before * self.per_page + rows < expected
