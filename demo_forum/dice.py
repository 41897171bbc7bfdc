"""Dice that fall the same way every time: choices as a pure function of a key."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

# Below this the pool is drawn anew: choices among a few thousand stay even to better than one in 10^15.
_LOW_WATER = 2**64


class Dice:
    """A stream of choices drawn from the hash of a key, such as ``Dice(seed, "comment", post, index)``.

    Not `random.Random`: only part of its interface promises the same numbers on every Python version, and
    seeding one for each of many thousand rows costs several times as much as one hash.
    """

    __slots__ = ("_blocks", "_key", "_pool")

    def __init__(self, *key: int | str) -> None:
        self._key = "/".join(map(str, key)).encode()
        self._blocks = 0
        self._pool = 0

    def below(self, limit: int) -> int:
        """An integer from 0 to `limit` - 1; `limit` is at most 2**53."""
        if self._pool < _LOW_WATER:
            block = blake2b(self._key, digest_size=64, salt=self._blocks.to_bytes(16, "big"))
            self._pool = int.from_bytes(block.digest(), "big")
            self._blocks += 1
        self._pool, face = divmod(self._pool, limit)
        return face

    def share(self) -> float:
        """A float from 0 (included) to 1 (excluded)."""
        return self.below(2**53) / 2**53

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[self.below(len(options))]
