"""Queue orders: in which order a stage's waiting requests are leased."""

from __future__ import annotations

from dataclasses import dataclass

from threadmill.store.scripts import Fragment


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """A strategy: its Lua gives each request a score, and the smallest is leased first."""

    name: str

    @property
    def lua(self) -> Fragment:
        return Fragment(f"order/{self.name}.lua")


PRIORITY = QueueOrder("priority")
"""A larger priority comes first; equal ones in the order they came."""
FIFO = QueueOrder("fifo")
LIFO = QueueOrder("lifo")

QUEUE_ORDERS: dict[str, QueueOrder] = {order.name: order for order in (PRIORITY, FIFO, LIFO)}
