"""The oracle of the fault suite: after a drain, the rows are the forum's truth and the books balance."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from chaos.ledger import Tally, note
from demo_forum.check import Check, rows_of, truth_of
from end_to_end.pipeline import Pipeline
from threadmill.model.stages import STAGES
from threadmill.store.letters import DeadLetter, dead_letters
from threadmill.store.status import items_waiting


def assert_whole(
    rig: Pipeline, job: str, *, dead: Collection[str] = (), twice: int | None = None, parked_items: int = 0
) -> None:
    """All collected once with its true content, and nothing left open.

    `dead` are the dead letters that must be there, and no others: of each, something that stands in its reason or its
    body (say `'"k":"4711"'`). Their posts or forums may be missing then, and no other rows. `twice` are the downloads
    beyond the first that are allowed (None = any; without faults it is 0), `parked_items` the items that no store could
    take, as many and no more; so many rows may be missing.
    """
    check, letters = rig.check(), _letters(rig)
    tally = _tally(rig, check, letters, parked_items)
    note(tally)
    wrong = [*_rows(check, tally), *_stages(rig), *_dead(letters, dead), *_streams(rig), *_job(rig, job)]
    if (parked := _parked(rig)) != parked_items:
        wrong.append(f"{parked} items are parked, not {parked_items}")
    if twice is not None and tally.twice > twice:
        wrong.append(f"{tally.twice} downloads beyond the first of a page, {twice} allowed")
    assert not wrong, "\n".join(wrong)


def downloaded_twice(rig: Pipeline) -> int:
    """Downloads beyond the first, summed over all pages: three downloads of one page are two."""
    return sum(downloads - 1 for downloads in rig.hits().values() if downloads > 1)


def _tally(rig: Pipeline, check: Check, letters: list[DeadLetter], parked_items: int) -> Tally:
    tables = (check.posts, check.comments)
    missing = sum(table.missing for table in tables)
    stats = [lane.stage(stage).stats for lane in rig.deployment.lanes() for stage in STAGES]
    reclaimed = sum(int(_client(rig).hget(key, "reclaimed") or 0) for key in stats)
    return Tally(
        lost=max(0, missing - parked_items - (_withheld(rig, letters) if missing and letters else 0)),
        unexpected=sum(table.unexpected + table.differing for table in tables),
        duplicated=sum(table.duplicate for table in tables),
        twice=downloaded_twice(rig),
        recovered=reclaimed - sum(letter.reason == "crashed" for letter in letters),
        dead=len(letters) + _parked(rig),
    )


def _withheld(rig: Pipeline, letters: list[DeadLetter]) -> int:
    """Missing rows whose post or forum is in a dead letter."""
    text = "\n".join(letter.body.decode("utf-8", "replace") for letter in letters)
    posts = {post["post_id"]: post for post in truth_of(rig.forum_url, "posts")}
    held = {key for key, post in posts.items() if f'"{key}"' in text or f'"{post["forum_id"]}"' in text}
    stored = {row["post_id"] for row in rows_of(rig.database, "posts")}
    comments = {row["comment_id"] for row in rows_of(rig.database, "comments")}
    theirs = [row for row in truth_of(rig.forum_url, "comments") if row["post_id"] in held]
    return len(held - stored) + sum(row["comment_id"] not in comments for row in theirs)


def _rows(check: Check, tally: Tally) -> list[str]:
    if tally.lost or tally.unexpected or tally.duplicated:
        return [f"posts are not the truth's: {check.posts}", f"comments are not the truth's: {check.comments}"]
    return []


def _stages(rig: Pipeline) -> list[str]:
    wrong = []
    for stage in STAGES:
        books = rig.books(stage)
        if books["accepted"] != books["done"] + books["dead"]:
            wrong.append(f"{stage}: accepted is not done + dead: {books}")
        if any(books[name] for name in ("tasks", "requests", "leased", "delayed")):
            wrong.append(f"{stage}: work is left: {books}")
    return wrong


def _letters(rig: Pipeline) -> list[DeadLetter]:
    lanes, client = rig.deployment.lanes(), rig.deployment.client
    return [letter for lane in lanes for stage in STAGES for letter in dead_letters(client, lane, stage, 1000)]


def _dead(letters: list[DeadLetter], expected: Collection[str]) -> list[str]:
    texts = [f"{letter.reason} {letter.body.decode('utf-8', 'replace')}" for letter in letters]
    wrong = [
        f"an unexpected dead letter: {letter}"
        for letter, text in zip(letters, texts, strict=True)
        if not any(part in text for part in expected)
    ]
    missing = [part for part in expected if not any(part in text for text in texts)]
    return wrong + [f"no dead letter has {part!r}" for part in missing]


def _parked(rig: Pipeline) -> int:
    return sum(_client(rig).xlen(lane.items_dead) for lane in rig.deployment.lanes())


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
