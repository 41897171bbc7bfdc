"""The forum's misbehaviour: what the knobs do to each request."""

from collections.abc import Callable
from dataclasses import dataclass, field

from demo_forum.dice import Dice
from demo_forum.knobs import Knobs


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a request: answered with `status` (200: what the page says) after `delay_s` seconds.

    If it comes to harm, `harm` is its name, and `dice` are for whatever that harm leaves open.
    """

    status: int
    delay_s: float
    harm: str = ""
    dice: Dice = field(default_factory=Dice)


_UNHARMED = Verdict(200, 0.0)


class Faults:
    """Judges requests by `knobs`. Errors, jitter and harms depend on the seed and the request's number only.

    `clock` tells seconds. The rate limit is a token bucket that holds one second's worth (at least one
    request), so an even stream at exactly the limit is never refused.
    """

    def __init__(self, knobs: Knobs, seed: int, clock: Callable[[], float]) -> None:
        self._seed = seed
        self._clock = clock
        self._requests = 0
        self.knobs = knobs

    @property
    def knobs(self) -> Knobs:
        """The knobs in force. A change fills the token bucket."""
        return self._knobs

    @knobs.setter
    def knobs(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self._harms, self._harm_by_path = knobs.harms, knobs.harm_by_path
        faulty = (
            knobs.latency_ms,
            knobs.jitter_ms,
            knobs.error_rate,
            knobs.rate_limit_per_s,
            knobs.harm,
            knobs.harm_at,
        )
        self._harmless = not any(faulty)
        self._tokens = max(knobs.rate_limit_per_s or 0.0, 1.0)
        self._filled_s = self._clock()

    def judge(self, path: str) -> Verdict:
        """The verdict on the next request, which is for `path`."""
        self._requests += 1
        if self._harmless:
            return _UNHARMED
        if not self._within_rate():
            return Verdict(429, 0.0)
        dice = Dice(self._seed, "fault", self._requests)
        status = 500 if dice.share() < self._knobs.error_rate else 200
        delay_s = (self._knobs.latency_ms + self._knobs.jitter_ms * dice.share()) / 1000
        harm = self._harm_by_path.get(path, "")
        if not harm and self._harms and dice.share() < self._knobs.harm_rate:
            harm = dice.pick(self._harms)
        return Verdict(status, delay_s, harm, dice)

    def _within_rate(self) -> bool:
        rate = self._knobs.rate_limit_per_s
        if rate is None:
            return True
        now_s = self._clock()
        self._tokens = min(self._tokens + (now_s - self._filled_s) * rate, max(rate, 1.0))
        self._filled_s = now_s
        # The tolerance forgives the rounding of many small refills, not a request.
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens -= 1
        return True
