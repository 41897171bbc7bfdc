"""The boards of a deployment: put on the schedule from a file or by hand, paused, scanned now, taken off it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from threadmill.model.board import Board
from threadmill.model.errors import ConfigError, StoreUnavailable
from threadmill.model.keys import Lane
from threadmill.model.source import Source
from threadmill.ops.deployment import Deployment
from threadmill.store.calls import run
from threadmill.store.clock import clock_ms
from threadmill.store.schedule import BATCH, Change, Read, Schedule

ATTEMPTS = 20
"""A board that others change so many times between a reading and a writing is a fault and no coincidence."""

Edit = Callable[[Lane, Read], Change | None]
"""What becomes of a board of a lane; None: it stays as it is."""
Progress = Callable[[int], None]


def _untold(_: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a boards file: how many boards were new, other than before, no longer in the file, the same."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    kept: int = 0


def load(deployment: Deployment, boards: Sequence[Board], progress: Progress = _untold) -> Loaded:
    """Make the schedule what the file says. Boards that left it go; those that an operator added stay.

    A new board is due at once; one that stays keeps its due time, unless it is to be scanned at other intervals.
    """
    wanted: dict[Lane, dict[str, Board]] = {lane: {} for lane in deployment.lanes()}
    for board in boards:
        wanted[deployment.lane_of(deployment.sources[board.source], board.id)][board.id] = board
    now_ms = clock_ms(deployment.client)

    def edit(lane: Lane, read: Read) -> Change | None:
        known = known_board(lane, read)
        if (board := wanted[lane].get(read.id)) is not None:
            return _put(read, known, board, now_ms)
        stays = not read.entry or (known is not None and known.live)
        return None if stays else Change(read, b"", None)

    made = []
    for lane, mine in wanted.items():
        ids = list(dict.fromkeys([*mine, *Schedule(lane).ids(deployment.client)]))
        made += _revise(deployment, lane, ids, edit, progress)
    added = sum(not change.board.entry for change in made)
    removed = sum(not change.entry for change in made)
    changed = len(made) - added - removed
    return Loaded(added, changed, removed, len(boards) - added - changed)


def put(deployment: Deployment, boards: Sequence[Board], progress: Progress = _untold) -> int:
    """Put boards of one source on the schedule, or change those that are on it; answers how many it changed."""
    wanted = {board.id: board for board in boards}
    now_ms = clock_ms(deployment.client)

    def edit(lane: Lane, read: Read) -> Change | None:
        return _put(read, known_board(lane, read), wanted[read.id], now_ms)

    return _each(deployment, deployment.sources[boards[0].source], list(wanted), edit, progress)


def remove(deployment: Deployment, source: Source, ids: Sequence[str]) -> int:
    """Take boards off the schedule for good; a scan under way is finished. `ConfigError` names those there are not."""
    return _each(deployment, source, _known(deployment, source, ids), lambda _, read: Change(read, b"", None))


def pause(deployment: Deployment, source: Source, ids: Sequence[str]) -> int:
    """Leave boards alone until they are resumed, whatever the boards file says."""

    def edit(lane: Lane, read: Read) -> Change | None:
        board = _readable(lane, read)
        return None if board.paused else Change(read, replace(board, paused=True).to_json(), None)

    return _each(deployment, source, _known(deployment, source, ids), edit)


def resume(deployment: Deployment, source: Source, ids: Sequence[str]) -> int:
    """Scan boards again that were paused: at once, if their time has come meanwhile."""
    now_ms = clock_ms(deployment.client)

    def edit(lane: Lane, read: Read) -> Change | None:
        board = _readable(lane, read)
        if not board.enabled:
            raise ConfigError(f"the boards file says enabled = false of board {read.id}: change it there")
        due_ms = max(now_ms, board.due_next())
        return Change(read, replace(board, paused=False).to_json(), due_ms, due_ms) if board.paused else None

    return _each(deployment, source, _known(deployment, source, ids), edit)


def scan(deployment: Deployment, source: Source, ids: Sequence[str], *, full: bool = False) -> int:
    """Make boards due now; one that is being scanned is scanned again when that is over."""
    now_ms = clock_ms(deployment.client)

    def edit(lane: Lane, read: Read) -> Change | None:
        board = _readable(lane, read)
        if not board.active:
            raise ConfigError(f"board {read.id} is paused: threadmill boards resume {read.id}")
        asked = replace(board, last=replace(board.last, full_next=full or board.last.full_next))
        return Change(read, asked.to_json(), min(now_ms, read.due_ms or now_ms), now_ms)

    return _each(deployment, source, _known(deployment, source, ids), edit)


def known_board(lane: Lane, read: Read) -> Board | None:
    """The board that was read; None if there is none, or its entry cannot be read."""
    try:
        return Board.from_json(read.entry, source=lane.source, id=read.id) if read.entry else None
    except ValueError:
        return None


def _put(read: Read, known: Board | None, board: Board, now_ms: int) -> Change | None:
    """What makes the board so; None if it is."""
    if known is not None:
        board = board.carrying_on(known)
        if board == known and board.active == (read.due_ms is not None):
            return None
    if not board.active:
        due_ms = None
    elif known is not None and known.interval == board.interval and read.due_ms is not None:
        due_ms = read.due_ms
    else:
        due_ms = max(now_ms, board.due_next())
    return Change(read, board.to_json(), due_ms, due_ms or 0)


def _readable(lane: Lane, read: Read) -> Board:
    if (board := known_board(lane, read)) is None:
        raise ConfigError(f"what Redis has of board {read.id} cannot be read: remove it, and add it again")
    return board


def _known(deployment: Deployment, source: Source, ids: Sequence[str]) -> list[str]:
    """The ids themselves, if there is a board of each."""
    unknown = []
    for lane, some in _by_lane(deployment, source, ids).items():
        unknown += [read.id for read in Schedule(lane).read(deployment.client, some) if not read.entry]
    if unknown:
        named = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        raise ConfigError(f"there is no board {named} of {source.name}: threadmill boards list shows those there are")
    return list(dict.fromkeys(ids))


def _each(deployment: Deployment, source: Source, ids: Sequence[str], edit: Edit, progress: Progress = _untold) -> int:
    lanes = _by_lane(deployment, source, ids)
    return sum(len(_revise(deployment, lane, some, edit, progress)) for lane, some in lanes.items())


def _by_lane(deployment: Deployment, source: Source, ids: Iterable[str]) -> dict[Lane, list[str]]:
    lanes: dict[Lane, list[str]] = defaultdict(list)
    for each in ids:
        lanes[deployment.lane_of(source, each)].append(each)
    return lanes


def _revise(deployment: Deployment, lane: Lane, ids: Sequence[str], edit: Edit, progress: Progress) -> list[Change]:
    """Read, edit and write boards in batches, and again those that somebody else changed meanwhile; the changes."""
    client, schedule, made = deployment.client, Schedule(lane), []
    for at in range(0, len(ids), BATCH):
        batch = left = list(ids[at : at + BATCH])
        for _ in range(ATTEMPTS):
            changes = [change for read in schedule.read(client, left) if (change := edit(lane, read)) is not None]
            answers = run(client, schedule.plan(changes)) if changes else []
            made += [change for change, done in zip(changes, answers, strict=True) if done]
            left = [change.board.id for change, done in zip(changes, answers, strict=True) if not done]
            if not left:
                break
        else:
            raise StoreUnavailable(f"board {left[0]} is changed by somebody else all the time; try again")
        progress(len(batch))
    return made
