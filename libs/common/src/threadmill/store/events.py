"""What happened, as the scripts tell it: jobs that were finished, posts that are complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadmill.model.keys import Lane
from threadmill.store.calls import Arg, Command, run, run_all
from threadmill.store.connection import BLOCK_MS, Client


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a lane's stream of events; `fields` begin with `event`, its kind."""

    lane: Lane
    id: bytes
    fields: Mapping[str, str]

    @property
    def at_ms(self) -> int:
        return int(self.id.split(b"-")[0])


class EventStreams:
    """The events of some lanes as one reader meets them: what is there, then what comes."""

    def __init__(self, client: Client, lanes: Sequence[Lane]) -> None:
        self._client = client
        self._lanes = {lane.events.encode(): lane for lane in lanes}
        self._after: dict[bytes, bytes] = dict.fromkeys(self._lanes, b"0")

    def last(self, count: int) -> list[Event]:
        """The newest of all lanes, oldest first. `wait` goes on behind them."""
        commands = [Command(("XREVRANGE", key, "+", "-", "COUNT", max(1, count)), list) for key in self._lanes]
        found = []
        for key, reply in zip(self._lanes, run_all(self._client, commands), strict=True):
            if reply:
                self._after[key] = reply[0][0]
            found += [self._event(key, *entry) for entry in reply]
        return _in_order(found)[len(found) - min(count, len(found)) :]

    def wait(self) -> list[Event]:
        """What came since, as soon as there is any; nothing after two seconds."""
        command: tuple[Arg, ...] = (
            "XREAD",
            "COUNT",
            500,
            "BLOCK",
            BLOCK_MS,
            "STREAMS",
            *self._after,
            *self._after.values(),
        )
        found = []
        for key, entries in run(self._client, Command(command, lambda reply: reply or ())):
            self._after[key] = entries[-1][0]
            found += [self._event(key, *entry) for entry in entries]
        return _in_order(found)

    def _event(self, key: bytes, entry_id: bytes, fields: Any) -> Event:
        pairs = fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
        texts = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in pairs}
        return Event(self._lanes[key], entry_id, texts)


def _in_order(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: [int(part) for part in event.id.split(b"-")])
