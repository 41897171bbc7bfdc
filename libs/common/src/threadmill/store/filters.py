"""Dupefilters: what a stage remembers, so that it does no work twice.

All have one contract (tests/store/test_filters.py): adding an id tells whether it was new, atomically, inside the verb
that acts on the answer. Sizes and error rates are measured by `make bench`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from threadmill.store.calls import Call
from threadmill.store.scripts import Fragment, compose


def fingerprint(text: str | bytes) -> str:
    """A 64-bit fingerprint as a signed decimal number, which Redis keeps in 8 bytes.

    Two of n ids collide with probability n²/2⁶⁵: 3 in a million for ten million ids.
    """
    data = text.encode() if isinstance(text, str) else text
    return str(int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True))


class Dupefilter(Protocol):
    """What a filter is to the verbs: a piece of Lua, and the form of the ids it takes."""

    @property
    def lua(self) -> Fragment: ...

    def id_of(self, text: str) -> str:
        """The id under which the filter remembers `text`."""
        ...


@dataclass(frozen=True, slots=True)
class _ByFingerprint:
    def id_of(self, text: str) -> str:
        return fingerprint(text)


@dataclass(frozen=True, slots=True)
class NoFilter(_ByFingerprint):
    """Remembers nothing: every id is new."""

    lua = Fragment("seen/none.lua")


@dataclass(frozen=True, slots=True)
class RunFilter(_ByFingerprint):
    """Exact within one run (all pages that one task causes), forgotten when the run is over."""

    lua = Fragment("seen/run.lua")


@dataclass(frozen=True, slots=True)
class ExactFilter(_ByFingerprint):
    """Exact and deletable, 64-bit fingerprints in `buckets` intsets.

    About 8.4 B each at 250 a bucket; raise `set-max-intset-entries` above ids / buckets (compose.yaml sets 4096).
    """

    buckets: int = 4096

    @property
    def lua(self) -> Fragment:
        return Fragment("seen/exact.lua", (("buckets", self.buckets),))


@dataclass(frozen=True, slots=True)
class SetFilter(_ByFingerprint):
    """Exact, one plain set: easy to look into, about 60 B an id."""

    lua = Fragment("seen/set.lua")


@dataclass(frozen=True, slots=True)
class BloomFilter(_ByFingerprint):
    """A scalable Bloom filter: calls a new id known with probability < `error`, never a known one new."""

    capacity: int = 100_000
    """Ids the first layer holds; each further layer holds twice as many."""
    error: float = 0.001

    @property
    def lua(self) -> Fragment:
        return Fragment("seen/bloom.lua", (("capacity", self.capacity), ("error", self.error)))


@dataclass(frozen=True, slots=True)
class WindowFilter(_ByFingerprint):
    """A rolling window: forgets an id by age, by size, or by how often it was turned away. 0 switches a limit off."""

    age_ms: int = 7 * 24 * 3_600_000
    size: int = 1_000_000
    hits: int = 0

    @property
    def lua(self) -> Fragment:
        return Fragment("seen/window.lua", (("age_ms", self.age_ms), ("size", self.size), ("hits", self.hits)))


@dataclass(frozen=True, slots=True)
class VersionedFilter:
    """For tasks: an id is new again when its version moved, and the version known before is told.

    It rolls: an id is forgotten by age, by size, or by how often it was turned away. 0 switches a limit off.
    """

    buckets: int = 4096
    age_s: int = 0
    size: int = 0
    hits: int = 0

    @property
    def lua(self) -> Fragment:
        limits = (("age_s", self.age_s), ("size", self.size), ("hits", self.hits))
        return Fragment("seen/versioned.lua", (("buckets", self.buckets), *limits))

    def id_of(self, text: str) -> str:
        return text


REQUEST_FILTERS: dict[str, Dupefilter] = {
    "run": RunFilter(),
    "exact": ExactFilter(),
    "set": SetFilter(),
    "bloom": BloomFilter(),
    "window": WindowFilter(),
}
"""By the name `THREADMILL_DUPEFILTER` gives them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer of a filter."""

    new: bool
    known: str
    """The version known before, for a versioned filter."""


def see(dupefilter: Dupefilter, root: str, ids: Sequence[tuple[str, str]], run: str = "") -> Call[list[Seen]]:
    """Add (text, version) pairs to the filter at `root` and tell which were new."""
    args: list[str | bytes | int] = [run]
    for text, version in ids:
        args += [dupefilter.id_of(text), version]
    script = compose("see", {"seen_request": dupefilter.lua})
    return Call(script, (root,), tuple(args), _answers)


def _answers(reply: list[bytes]) -> list[Seen]:
    return [Seen(bool(new), known.decode()) for new, known in zip(reply[::2], reply[1::2], strict=True)]
