"""Progress on standard error: what is running, and how long it may still take."""

import sys
import time


class Progress:
    """Announces steps of about equal length and guesses the rest from those that are over."""

    def __init__(self, steps: int, unit: str) -> None:
        """`unit` names a step, for people."""
        self._steps = steps
        self._unit = unit
        self._begun = 0
        self._since = time.monotonic()

    def begin(self, text: str) -> None:
        """Says that the next step begins."""
        over = self._begun
        self._begun += 1
        left = ""
        if over:
            seconds = (time.monotonic() - self._since) / over * (self._steps - over)
            left = f", about {duration(seconds)} left"
        say(f"[{self._unit} {self._begun} of {self._steps}{left}] {text} …")

    def end(self, text: str) -> None:
        """Says how the step that was begun last came out."""
        say(f"    {text}")


def duration(seconds: float) -> str:
    """Seconds for people: `50 s` or `4 min`."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def say(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)
