"""The seeds of a run: those that were named, and one drawn if `drawn` is among them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count, islice


@dataclass(frozen=True)
class Seeds:
    """What tests that roll dice run with."""

    named: tuple[int, ...]
    drawn: int | None = None
    """The one of them that is new in this run."""

    @classmethod
    def parse(cls, text: str) -> Seeds:
        """Read `1,2,drawn`."""
        words = [word.strip() for word in text.split(",")]
        drawn = random.SystemRandom().randrange(1, 10**8) if "drawn" in words else None
        return cls(tuple(drawn if word == "drawn" and drawn else int(word) for word in words), drawn)

    def many(self, wanted: int) -> list[int]:
        """At least so many, the others derived from the drawn one; who names all seeds gets just those."""
        if self.drawn is None:
            return list(self.named)
        dice = random.Random(self.drawn)
        more = (dice.randrange(1, 10**8) for _ in count())
        return [*self.named, *islice(more, max(0, wanted - len(self.named)))]

    def __str__(self) -> str:
        return ", ".join(f"{seed} (drawn)" if seed == self.drawn else str(seed) for seed in self.named)
