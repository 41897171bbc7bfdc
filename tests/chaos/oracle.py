"""The oracle of the fault suite: after a drain, the rows are the forum's truth and the books balance."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from end_to_end.pipeline import Pipeline
from threadmill.model.stages import STAGES
from threadmill.store.letters import dead_letters
from threadmill.store.status import items_waiting


def assert_whole(rig: Pipeline, job: str, *, dead: Collection[str] = ()) -> None:
    """All collected once with its true content, and nothing left open.

    `dead` are the dead letters that must be there, and no others: of each, something that stands in its reason or its
    body (say `'"k":"4711"'`). What they would have brought may be missing then; nothing else may be wrong.
    """
    wrong = [*_rows(rig, bool(dead)), *_stages(rig), *_dead(rig, dead), *_streams(rig), *_job(rig, job)]
    assert not wrong, "\n".join(wrong)


def downloaded_twice(rig: Pipeline) -> int:
    """Downloads beyond the first, summed over all pages: three downloads of one page are two."""
    return sum(downloads - 1 for downloads in rig.hits().values() if downloads > 1)


def _rows(rig: Pipeline, may_miss: bool) -> list[str]:
    check = rig.check()
    tallies = {"posts": check.posts, "comments": check.comments}
    return [
        f"{table} are not the truth's: {tally}"
        for table, tally in tallies.items()
        if (tally.missing and not may_miss) or tally.unexpected or tally.duplicate or tally.differing
    ]


def _stages(rig: Pipeline) -> list[str]:
    wrong = []
    for stage in STAGES:
        books = rig.books(stage)
        if books["accepted"] != books["done"] + books["dead"]:
            wrong.append(f"{stage}: accepted is not done + dead: {books}")
        if any(books[name] for name in ("tasks", "requests", "leased", "delayed")):
            wrong.append(f"{stage}: work is left: {books}")
    return wrong


def _dead(rig: Pipeline, expected: Collection[str]) -> list[str]:
    lanes, client = rig.deployment.lanes(), rig.deployment.client
    letters = [letter for lane in lanes for stage in STAGES for letter in dead_letters(client, lane, stage, 1000)]
    texts = {letter.id: f"{letter.reason} {letter.body.decode('utf-8', 'replace')}" for letter in letters}
    wrong = [f"an unexpected dead letter: {x}" for x in letters if not any(part in texts[x.id] for part in expected)]
    missing = [part for part in expected if not any(part in text for text in texts.values())]
    return wrong + [f"no dead letter has {part!r}" for part in missing]


def _streams(rig: Pipeline) -> list[str]:
    wrong = []
    for lane in rig.deployment.lanes():
        stages = [lane.stage(stage) for stage in STAGES]
        for stream in (lane.items, *(key for keys in stages for key in (keys.tasks, keys.express))):
            wrong += _stream(_client(rig), stream)
        for keys in stages:
            left = {
                key: _client(rig).type(key)
                for key in (keys.leases, keys.leased, keys.delayed, keys.requests, keys.runs)
            }
            wrong += [f"{key} is left behind" for key, kind in left.items() if kind != b"none"]
        if bad := _client(rig).xlen(lane.items_dead):
            wrong.append(f"{lane.items_dead} has {bad} items no store could take")
    if waiting := items_waiting(_client(rig), rig.deployment.lanes()):
        wrong.append(f"{waiting} items committed and not settled")
    return wrong


def _stream(client: Any, stream: str) -> list[str]:
    if not client.exists(stream):
        return []
    wrong = [f"{stream} has {left} entries"] if (left := client.xlen(stream)) else []
    pending = {group["name"]: group["pending"] for group in client.xinfo_groups(stream)}
    return wrong + [f"{stream} has {n} entries pending in group {name.decode()}" for name, n in pending.items() if n]


def _job(rig: Pipeline, job: str) -> list[str]:
    books = rig.job(job)
    stages = books.accepted.keys() | books.done.keys() | books.dead.keys()
    unbalanced = [
        stage for stage in stages if books.accepted.get(stage, 0) != books.done.get(stage, 0) + books.dead.get(stage, 0)
    ]
    if unbalanced or not books.finished:
        return [f"job {job} does not balance in {', '.join(sorted(unbalanced)) or 'no stage, but is open'}: {books}"]
    return []


def _client(rig: Pipeline) -> Any:
    return rig.deployment.client
