"""The forum's misbehaviour: what the knobs do to each request."""

from collections.abc import Callable
from dataclasses import dataclass

from demo_forum.dice import Dice
from demo_forum.knobs import Knobs


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a request: answered with `status` (200: what the page says) after `delay_s` seconds."""

    status: int
    delay_s: float


_UNHARMED = Verdict(200, 0.0)


class Faults:
    """Judges requests by `knobs`. Errors and jitter depend on the seed and the request's number only.

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
        faulty = (knobs.latency_ms, knobs.jitter_ms, knobs.error_rate, knobs.rate_limit_per_s)
        self._harmless = not any(faulty)
        self._tokens = max(knobs.rate_limit_per_s or 0.0, 1.0)
        self._filled_s = self._clock()

    def judge(self) -> Verdict:
        """The verdict on the next request."""
        self._requests += 1
        if self._harmless:
            return _UNHARMED
        if not self._within_rate():
            return Verdict(429, 0.0)
        dice = Dice(self._seed, "fault", self._requests)
        status = 500 if dice.share() < self._knobs.error_rate else 200
        return Verdict(status, (self._knobs.latency_ms + self._knobs.jitter_ms * dice.share()) / 1000)

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
