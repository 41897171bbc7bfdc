"""Keys: one lane, one hash slot; one spelling, and no two things under one key."""

from __future__ import annotations

import re

import pytest
from redis.crc import key_slot

from threadmill.model.keys import Lane, partition_of
from threadmill.model.stages import STAGES

LANES = [Lane("bbs"), Lane("bbs", 3), Lane("my-forum_2", 0, "team.a"), Lane("bbs", 11, "prod")]


def keys_of(lane: Lane) -> list[str]:
    """Every key of a lane."""
    keys = [lane.items, lane.items_stats, lane.items_dead, lane.site, lane.job("j1"), lane.job("j2")]
    for name in STAGES:
        stage = lane.stage(name)
        keys += [value for key in dir(type(stage)) if isinstance(value := getattr(stage, key), str) and key[0] != "_"]
        keys += [stage.seen_part("x"), stage.seen_part(0)]
    return [key for key in keys if key not in {lane.stage(name).base for name in STAGES}]


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.prefix)
def test_all_keys_of_a_lane_live_in_one_slot(lane: Lane) -> None:
    # Given every key of a lane; then the hash tag is the lane, and the slot is one
    keys = keys_of(lane)
    assert len(keys) > 40
    assert {re.search(r"\{(.*?)\}", key).group(1) for key in keys} == {f"{lane.source}.{lane.partition}"}  # type: ignore[union-attr]
    assert len({key_slot(key.encode()) for key in keys}) == 1


def test_partitions_and_sources_live_in_different_slots() -> None:
    slots = {key_slot(Lane(source, partition).items.encode()) for source in ("bbs", "other") for partition in range(8)}
    assert len(slots) == 16


def test_no_two_things_share_a_key() -> None:
    keys = [key for lane in LANES for key in keys_of(lane)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.prefix)
def test_the_namespace_stands_before_every_key(lane: Lane) -> None:
    start = f"{lane.namespace}:{{" if lane.namespace else "{"
    assert all(key.startswith(start) for key in keys_of(lane))


def test_keys_are_spelt_as_documented() -> None:
    detail = Lane("bbs").stage("detail")
    assert detail.tasks == "{bbs.0}:detail:tasks"
    assert detail.express == "{bbs.0}:detail:tasks:express"
    assert detail.requests == "{bbs.0}:detail:requests"
    assert detail.delayed == "{bbs.0}:detail:delayed"
    assert detail.leases == "{bbs.0}:detail:leases"
    assert detail.leased == "{bbs.0}:detail:leased"
    assert detail.dead == "{bbs.0}:detail:dead"
    assert detail.stats == "{bbs.0}:detail:stats"
    assert detail.workers == "{bbs.0}:detail:workers"
    assert detail.control == "{bbs.0}:detail:control"
    assert detail.seen_part("set") == "{bbs.0}:detail:seen:set"
    assert Lane("bbs").items == "{bbs.0}:items"
    assert Lane("bbs", 2, "prod").job("ab12") == "prod:{bbs.2}:jobs:ab12"


def test_partitions_are_stable_and_even() -> None:
    # Given keys as forums number them; then each partition gets its share, the same in every process and release
    assert [partition_of(key, 8) for key in ("1", "2", "42", "게시판")] == [7, 5, 0, 1]
    shares = [0] * 8
    for number in range(8_000):
        shares[partition_of(str(number), 8)] += 1
    assert all(800 < share < 1_200 for share in shares)
    assert {partition_of(str(number), 1) for number in range(100)} == {0}
