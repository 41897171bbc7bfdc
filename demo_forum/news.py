"""News: which pages had something on them that nobody was shown before."""

from collections import defaultdict


class News:
    """Remembers the rows that each interface has shown: a post in a list with its count, a post's text, a comment.

    So a page whose rows only moved, from one page to the next, has nothing new.
    """

    def __init__(self) -> None:
        self._shown: defaultdict[str, set[object]] = defaultdict(set)
        # A page that was not rendered anew since its path was last asked for cannot have anything new.
        self._last: dict[str, tuple[object, ...]] = {}

    def shows(self, interface: str, path: str, rows: tuple[object, ...]) -> bool:
        """Whether any of `rows` is shown for the first time, now that `path` is answered with them."""
        if self._last.get(path) is rows:
            return False
        self._last[path] = rows
        shown = self._shown[interface]
        fresh = not shown.issuperset(rows)
        shown.update(rows)
        return fresh
