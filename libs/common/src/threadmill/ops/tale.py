"""What a trace found, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from threadmill.model.stages import LIST
from threadmill.ops.pieces import letter_name
from threadmill.ops.times import time_text
from threadmill.ops.trace import Whereabouts
from threadmill.store.letters import Death
from threadmill.store.pieces import Piece, Place


def title(key: str, where: Whereabouts) -> str:
    """What the key is in this stage."""
    return f"{'board' if where.stage is LIST else 'post'} {key}"


def sentences(where: Whereabouts, now_ms: int) -> Iterator[str]:
    """What one stage knows, most recent first: where its work is, then what is remembered."""
    for piece in where.pieces:
        yield from _piece(piece, where, now_ms)
    known = where.known
    if known is None:
        if not where.pieces:
            yield "never seen"
        return
    at, version = _when(known.at_s * 1000, now_ms), f", at version {known.version}" if known.version else ""
    again = bool(where.pieces) or known.earlier
    if again and not where.pieces:
        yield f"submitted again{version}, not done, and nowhere now: its dead letter was dropped, or it was exported"
    if known.outcome == "done":
        yield f"before that, done {at}" if again else f"done {at}{version}"
    elif known.outcome == "gone":
        yield f"{'before that, gone' if again else 'gone'} {at}: the site says that there is no such thing any more"
    elif not where.pieces:
        yield f"submitted once{version}, not done, and nowhere now: its dead letter was dropped, or it was exported"


def _piece(piece: Piece, where: Whereabouts, now_ms: int) -> Iterator[str]:
    job = f"; job {piece.job}" if piece.job else ""
    match piece.place:
        case Place.TASKS | Place.EXPRESS:
            yield _task(piece, now_ms) + job
        case Place.REQUESTS:
            first = ", before all that is not express" if piece.express else ""
            yield f"page {piece.page} waits in the request queue, {_before(piece)}{first}{job}"
        case Place.LEASED:
            yield f"page {piece.page} is leased by {piece.holder}, {_until(piece.at_ms, now_ms)}{job}"
        case Place.DELAYED:
            due = "due, and queued at the next lease" if piece.at_ms <= now_ms else _until(piece.at_ms, now_ms)
            yield f"page {piece.page} is delayed, {due}{job}"
        case Place.DEAD:
            yield from _letter(piece, where, now_ms)
    if piece.failures:
        yield f"  it failed {_times(piece.failures)} so far"
    if piece.deliveries:
        yield f"  its worker died with it {_times(piece.deliveries)}"
    for death in piece.history:
        yield f"  replayed after it was dead: {_death(death, now_ms)}"


def _task(piece: Piece, now_ms: int) -> str:
    stream = "express stream" if piece.place is Place.EXPRESS else "task stream"
    if piece.holder:
        return f"its task was read from the {stream} by {piece.holder}, which has not admitted it yet"
    return f"its task waits in the {stream}, {_before(piece)}, since {_when(piece.at_ms, now_ms)}"


def _letter(piece: Piece, where: Whereabouts, now_ms: int) -> Iterator[str]:
    letter = piece.letter
    if letter is None:
        return
    name, what = letter_name(piece, where.lane), "its task" if piece.page is None else f"page {piece.page}"
    job = f"; job {piece.job}" if piece.job else ""
    yield f"{what} is dead since {_when(piece.at_ms, now_ms)}: {letter.reason}: {letter.error}{job}"
    yield f"  threadmill dead replay {where.stage.name} --id {name}"


def _death(death: Death, now_ms: int) -> str:
    return f"{death.reason}, {_when(death.at_ms, now_ms)}: {death.error}"


def _before(piece: Piece) -> str:
    if piece.before is None:
        return "somewhere"
    return f"{piece.before:,} before it" if piece.before else "next"


def _when(at_ms: int, now_ms: int) -> str:
    return f"{_clock(at_ms)} ({span(now_ms - at_ms)} ago)"


def _until(at_ms: int, now_ms: int) -> str:
    if at_ms <= now_ms:
        return f"until {_clock(at_ms)}: that is over, and another worker will take it"
    return f"until {_clock(at_ms)} (for {span(at_ms - now_ms)})"


def _clock(at_ms: int) -> str:
    return time_text(at_ms)[:19] + "Z"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def span(ms: int) -> str:
    """A length of time, to two digits or so: 0.4 s, 12 s, 5 min, 3 h, 2 d."""
    seconds = max(0, ms) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
