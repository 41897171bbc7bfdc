"""A batch of items: what cannot be read costs no more than what can."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from item_writer.batch import read_batch
from threadmill.model.keys import Lane
from threadmill.store.items import ItemEntry

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("body", "parked"),
    [
        (b'[{"type": "post", "body": "' + b"\\n" * MILLION + b'"}, 1]', 2),
        (b'[{"type": "post", "body": "' + b'\\"' * MILLION, 1),  # a text that nothing ends
        (b"[1e999, " * (MILLION // 20), 1),
    ],
    ids=["escapes", "no end", "no brackets"],
)
def test_bad_items_of_many_mb_take_little_time_and_memory(body: bytes, parked: int) -> None:
    entry = ItemEntry(Lane("bbs", 0), b"1-0", "detail", body)
    started = time.monotonic()
    tracemalloc.start()
    batch = read_batch([entry])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(batch.rejected) == parked
    assert peak < 16 * len(body)
    assert time.monotonic() - started < 10
