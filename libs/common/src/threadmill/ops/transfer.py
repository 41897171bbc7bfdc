"""Waiting work on its way out of a deployment and into one, as a file with a line for each piece."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from threadmill.model.errors import ConfigError, TaskError
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.model.task import Task
from threadmill.ops.deployment import Deployment
from threadmill.ops.parcel import Parcel, can_be_sent, check_header, from_line, header, to_line
from threadmill.store.calls import Call, run, run_all
from threadmill.store.jobs import announce
from threadmill.store.pieces import Piece, Place
from threadmill.store.portions import portions
from threadmill.store.purge import EXPORTED, purge
from threadmill.store.restore import Parked, Waiting, restore_letters, restore_requests, restore_tasks
from threadmill.store.stage import StageStore

BATCH = 250
"""Pieces of one call: a script holds Redis for a few ms at most."""
ANNOUNCED_MS = 600_000
"""How long the jobs of a file are held open, so that none looks finished between two batches of it."""


@dataclass
class Exported:
    """What came of an export, in pieces by queue."""

    written: Counter[str] = field(default_factory=Counter)
    taken: int = 0
    """Those that were written and taken out of the stage."""
    gone: int = 0
    """Those that were written, and that a worker had leased before they could be taken out."""
    unreadable: int = 0
    """Those that cannot be written down so that they could be put back; they were left where they are."""


def export(
    deployment: Deployment,
    stage: Stage,
    places: Sequence[Place],
    file: IO[bytes],
    *,
    source: str | None = None,
    take: bool = False,
    told: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write the pieces of these places to `file`, after a header; with `take` those written leave the stage."""
    done = Exported()
    file.write(header(stage) + b"\n")
    for lane in deployment.lanes(source):
        store = deployment.store(lane, stage)
        for place in places:
            for portion in portions(deployment.client, lane, stage.name, place):
                ours = [piece for piece in portion if can_be_sent(piece)]
                done.unreadable += len(portion) - len(ours)
                _write(deployment, store, ours, file)
                done.written[place] += len(ours)
                if take and ours:
                    _settle_on_disk(file)
                    taken = run(deployment.client, purge(store, place, ours, counter=EXPORTED, forget=False))
                    done.taken += taken
                    done.gone += len(ours) - taken
                told(len(portion))
    _settle_on_disk(file)
    return done


def _write(deployment: Deployment, store: StageStore, pieces: Sequence[Piece], file: IO[bytes]) -> None:
    known = run_all(deployment.client, [store.known(piece.key) for piece in pieces])
    for piece, seen in zip(pieces, known, strict=True):
        file.write(to_line(piece, store.lane, seen.version if seen else "") + b"\n")


def _settle_on_disk(file: IO[bytes]) -> None:
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError:
        return  # a pipe: whoever reads it has it


@dataclass
class Imported:
    """What came of an import, in pieces."""

    restored: Counter[str] = field(default_factory=Counter)
    """Those that wait again, by queue."""
    before: int = 0
    """Those of batches that had been imported already."""


def check(deployment: Deployment, stage: Stage, file: IO[bytes], told: Callable[[int], None]) -> set[tuple[Lane, str]]:
    """Read all of a file; answers the jobs that are in it. `ConfigError` names the first bad line by its number.

    `told` is called with how many bytes were read since it was last called.
    """
    jobs: set[tuple[Lane, str]] = set()
    for _, line, parcel in _parcels(deployment, stage, file):
        if parcel.job:
            jobs.add((parcel.lane, parcel.job))
        told(len(line))
    return jobs


def import_(
    deployment: Deployment,
    stage: Stage,
    file: IO[bytes],
    jobs: Iterable[tuple[Lane, str]],
    *,
    again: str = "",
    told: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Put back what is in a file that was checked.

    Batches are told apart by their content and their place in the file, so that what was interrupted may be said again.
    `again`: something new, for what was put back in the last day to be put back once more.
    """
    client, done = deployment.client, Imported()
    held = [(lane, job) for lane, job in jobs]
    run_all(client, [announce(lane, job, ANNOUNCED_MS) for lane, job in held])
    try:
        for lane, place, batch in _batches(_parcels(deployment, stage, file)):
            token = hashlib.blake2b(again.encode(), digest_size=12)
            for number, line, _ in batch:
                token.update(b"%d %s" % (number, line))
            call = _restoring(deployment.store(lane, stage), place, [parcel for *_, parcel in batch], token.hexdigest())
            restored = run(client, call)
            if restored < 0:
                done.before += len(batch)
            else:
                done.restored[place] += restored
            told(sum(len(line) for _, line, _ in batch))
    finally:
        run_all(client, [announce(lane, job, 0) for lane, job in held])
    return done


Line = tuple[int, bytes, Parcel]


def _parcels(deployment: Deployment, stage: Stage, file: IO[bytes]) -> Iterator[Line]:
    for number, line in enumerate(file, 1):
        try:
            if number == 1:
                check_header(line, stage)
            elif line.strip():
                yield number, line, from_line(line, deployment, stage)
        except (ConfigError, TaskError) as error:
            raise ConfigError(f"line {number}: {error}. Nothing was imported") from None
    if file.tell() == 0:
        raise ConfigError("the file is empty: not even the header is there. Nothing was imported")


def _batches(lines: Iterator[Line]) -> Iterator[tuple[Lane, Place, list[Line]]]:
    waiting: dict[tuple[Lane, Place], list[Line]] = {}
    for line in lines:
        batch = waiting.setdefault((line[2].lane, line[2].place), [])
        batch.append(line)
        if len(batch) == BATCH:
            yield line[2].lane, line[2].place, batch
            del waiting[line[2].lane, line[2].place]
    for (lane, place), batch in waiting.items():
        yield lane, place, batch


def _restoring(store: StageStore, place: Place, parcels: Sequence[Parcel], token: str) -> Call[int]:
    whats = [parcel.what for parcel in parcels]
    tasks = [what for what in whats if isinstance(what, Task)]
    if tasks:
        return restore_tasks(store, tasks, token=token, express=place is Place.EXPRESS)
    pages = [what for what in whats if isinstance(what, Waiting)]
    if pages:
        return restore_requests(store, pages, token=token)
    return restore_letters(store, [what for what in whats if isinstance(what, Parked)], token=token)
