"""Who asked for what: counters of the requests the forum received."""

from collections import Counter

from demo_forum.news import News


class Hits:
    """Requests by interface and by path since the last reset, how many of them got a page with something new, and how
    many a 429 or 500, or came to which harm.

    Every request counts, whatever the answer was; only while the forum is down nothing does: it is not there.
    """

    def __init__(self) -> None:
        self._paths: Counter[str] = Counter()
        self._interfaces: Counter[str] = Counter()
        self._refused = 0
        self._fresh: Counter[str] = Counter()
        self._news = News()
        self._harmed: Counter[str] = Counter()

    def record(self, interface: str, path: str) -> None:
        """Counts a request of `interface` (``list``, ``post`` or ``comment``)."""
        self._interfaces[interface] += 1
        self._paths[path] += 1

    def served(self, interface: str, path: str, rows: tuple[object, ...]) -> None:
        """Counts a recorded request as fresh if one of these rows was never shown before, reset or not."""
        if self._news.shows(interface, path, rows):
            self._fresh[interface] += 1

    def refuse(self) -> None:
        """Counts a recorded request as refused."""
        self._refused += 1

    def harm(self, name: str) -> None:
        """Counts a recorded request as one that came to this harm."""
        self._harmed[name] += 1

    def reset(self) -> None:
        """Back to 0."""
        self._harmed.clear()
        self._fresh.clear()
        self._paths.clear()
        self._interfaces.clear()
        self._refused = 0

    def report(self, *, with_paths: bool) -> dict[str, object]:
        """``{"list", "post", "comment", "total", "fresh", "refused", "harmed"}`` and, if wanted, ``"paths"``.

        Within ``"fresh"`` are the first four again.
        """
        counts: dict[str, object] = dict(_by_interface(self._interfaces))
        counts |= {"fresh": _by_interface(self._fresh), "refused": self._refused, "harmed": dict(self._harmed)}
        if with_paths:
            counts["paths"] = dict(self._paths)
        return counts


def _by_interface(counter: Counter[str]) -> dict[str, int]:
    return {name: counter[name] for name in ("list", "post", "comment")} | {"total": counter.total()}
