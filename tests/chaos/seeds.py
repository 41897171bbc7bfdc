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
        """Read `1,2,drawn`, or `1,2,4711*`: the star is at the one that was drawn."""
        named, drawn = [], None
        for word in (part.strip() for part in text.split(",")):
            seed = random.SystemRandom().randrange(1, 10**8) if word == "drawn" else int(word.rstrip("*"))
            named.append(seed)
            drawn = seed if word == "drawn" or word.endswith("*") else drawn
        return cls(tuple(named), drawn)

    def settled(self) -> str:
        """The same for other processes: nothing is left to be drawn."""
        return ",".join(f"{seed}*" if seed == self.drawn else str(seed) for seed in self.named)

    def many(self, wanted: int) -> list[int]:
        """At least so many, the others derived from the drawn one; who names all seeds gets just those."""
        if self.drawn is None:
            return list(self.named)
        dice = random.Random(self.drawn)
        more = (dice.randrange(1, 10**8) for _ in count())
        return [*self.named, *islice(more, max(0, wanted - len(self.named)))]

    def __str__(self) -> str:
        return ", ".join(f"{seed} (drawn)" if seed == self.drawn else str(seed) for seed in self.named)
