"""Whether what the keys hold can be read: asked once something could not, for Redis does not say which key it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadmill.model.keys import Lane, StageKeys
from threadmill.model.stages import STAGES
from threadmill.store.calls import Command, run, run_all
from threadmill.store.connection import Client
from threadmill.store.glob import escaped

PORTION = 1000
"""Keys, or fields of a hash, of one look."""
MOST = 20
"""Faults of one answer: whoever has more has lost the whole database."""

LARGEST = 1e16
"""Of scores: times are ms, and no priority is as large."""

Pairs = list[tuple[bytes, bytes]]

COUNT = re.compile(rb"-?\d{1,18}")
NUMBER = re.compile(rb"\d{1,15}(\.\d{1,20})?(e[+-]?\d{1,2})?")
FLAG = re.compile(rb"1")
ANY_FIELD = re.compile(".*", re.DOTALL)
_JOB_COUNTS = re.compile("open|finished_at|hold|priority|keep|.*:(accepted|done|dead|filtered|items|gone|ignored)")
_CONTROL_COUNTS = re.compile("concurrency|replicas")
_CONTROL_FLAGS = re.compile("paused|draining")


@dataclass(frozen=True, slots=True)
class Kept:
    """A key, the type it has (as TYPE says), and which fields of a hash are numbers of which form."""

    key: str
    type: str
    fields: tuple[tuple[re.Pattern[str], re.Pattern[bytes]], ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """A key that cannot be read, and what is wrong with it."""

    key: str
    problem: str


def faults(client: Client, lanes: Sequence[Lane]) -> list[Fault]:
    """The keys of these lanes that cannot be read, at most `MOST`: those with names, and if they are sound, all."""
    found: list[Fault] = []
    for lane in lanes:
        found += _faults(client, list(named(lane)))
    if found:
        return found[:MOST]
    for lane in lanes:
        for portion in _scanned(client, lane):
            found += _faults(client, portion)
            if len(found) >= MOST:
                return found[:MOST]
    return found


def _faults(client: Client, kept: Sequence[Kept]) -> list[Fault]:
    types = run_all(client, [Command(("TYPE", each.key), _text) for each in kept])
    found = [
        Fault(each.key, f"it is of the type {is_}, and should be of the type {each.type}")
        for each, is_ in zip(kept, types, strict=True)
        if is_ not in (each.type, "none")
    ]
    sound = [each for each, is_ in zip(kept, types, strict=True) if is_ == each.type]
    hashes = [each for each in sound if each.fields]
    scans = [Command(("HSCAN", each.key, 0, "COUNT", PORTION), _pairs) for each in hashes]
    zsets = [each for each in sound if each.type == "zset"]
    ends = [Command(("ZRANGE", each.key, *end, "WITHSCORES"), _pairs) for each in zsets for end in ((0, 0), (-1, -1))]
    replies = run_all(client, [*scans, *ends])
    problems = [_in_hash(each, pairs) for each, pairs in zip(hashes, replies, strict=False)]
    problems += [_in_zset(pairs) for pairs in replies[len(scans) :]]
    asked = [*hashes, *(each for each in zsets for _ in range(2))]
    return found + [Fault(each.key, said) for each, said in zip(asked, problems, strict=True) if said]


def _in_hash(kept: Kept, pairs: Pairs) -> str:
    for field, value in pairs:
        for names, form in kept.fields:
            if names.fullmatch(_text(field)) and not form.fullmatch(value):
                return f"its field {_text(field)!r} is {_text(value[:60])!r}, and should be a number"
    return ""


def _in_zset(pairs: Pairs) -> str:
    for member, score in pairs:
        if abs(float(score)) > LARGEST:
            return f"its member {_text(member[:60])!r} has the score {_text(score)}"
    return ""


def named(lane: Lane) -> Iterator[Kept]:
    """The keys whose names are known beforehand."""
    counts = ((ANY_FIELD, COUNT),)
    yield Kept(lane.items, "stream")
    yield Kept(lane.items_stats, "hash", counts)
    yield Kept(lane.items_dead, "stream")
    yield Kept(lane.site, "hash", ((ANY_FIELD, NUMBER),))
    yield Kept(lane.jobs, "zset")
    yield Kept(lane.events, "stream")
    yield Kept(lane.boards, "hash")
    yield Kept(lane.schedule, "zset")
    yield Kept(lane.looks, "zset")
    yield Kept(lane.schedule_stats, "hash", counts)
    yield Kept(lane.dispatchers, "zset")
    for stage in STAGES:
        yield from _of_stage(lane.stage(stage))


def _of_stage(keys: StageKeys) -> Iterator[Kept]:
    counts = ((ANY_FIELD, COUNT),)
    control = ((_CONTROL_FLAGS, FLAG), (_CONTROL_COUNTS, COUNT), (re.compile("rate"), NUMBER))
    yield Kept(keys.tasks, "stream")
    yield Kept(keys.express, "stream")
    for key in (keys.requests, keys.delayed, keys.leases, keys.dead_index, keys.workers):
        yield Kept(key, "zset")
    for key in (keys.leased, keys.dead):
        yield Kept(key, "hash")
    for key in (keys.runs, keys.stats, keys.reports):
        yield Kept(key, "hash", counts)
    yield Kept(keys.control, "hash", control)


def _scanned(client: Client, lane: Lane) -> Iterator[list[Kept]]:
    """The keys whose names have a job, a run or a bucket in them, as SCAN finds them."""
    families = list(_families(lane))
    cursor: Any = b"0"
    while True:
        command = ("SCAN", cursor, "MATCH", f"{escaped(lane.prefix)}:*", "COUNT", PORTION)
        cursor, names = run(client, Command(command, list))
        portion = []
        for name in map(_text, names):
            for root, type_, fields in families:
                if name.startswith(root) and name != lane.events:
                    portion.append(Kept(name, type_, fields))
                    break
        yield portion
        if int(cursor) == 0:
            return


def _families(lane: Lane) -> Iterator[tuple[str, str, tuple[tuple[re.Pattern[str], re.Pattern[bytes]], ...]]]:
    yield lane.jobs_prefix, "hash", ((_JOB_COUNTS, COUNT),)
    for stage in STAGES:
        keys = lane.stage(stage)
        yield keys.seen_part("v:"), "hash", ()
        yield keys.seen_part("run:"), "set", ()
        yield keys.seen_part("submitted:"), "string", ()
        yield f"{keys.met}:", "set", ()


def _pairs(reply: Any) -> Pairs:
    """Of HSCAN or ZRANGE, however this client hands them out."""
    flat = reply[1] if len(reply) == 2 and isinstance(reply[1], list | dict) else reply
    if isinstance(flat, dict):
        return list(flat.items())
    return list(zip(flat[::2], flat[1::2], strict=True))


def _text(data: Any) -> str:
    return data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else str(data)
