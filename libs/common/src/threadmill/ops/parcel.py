"""One line of an exported file: a piece of work, as JSON, on its way to this or another deployment.

The first line names the format and the stage; every other line is one piece. What is the default is left out.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from dataclasses import dataclass, replace
from typing import Any

import orjson

from threadmill.model.errors import ConfigError, TaskError
from threadmill.model.keys import Lane
from threadmill.model.stages import Stage
from threadmill.model.task import EXPRESS_PRIORITY, Task
from threadmill.ops.deployment import Deployment
from threadmill.store.letters import DeadLetter, Death, written
from threadmill.store.pieces import QUEUES, STREAMS, Piece, Place, reference_of
from threadmill.store.restore import Parked, Waiting
from threadmill.store.work import Record

FORMAT = 1
_RUN = re.compile(r"[A-Za-z0-9-]{0,60}")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A line that was read: what it holds, and where that goes."""

    lane: Lane
    place: Place
    what: Task | Waiting | Parked

    @property
    def job(self) -> str:
        if isinstance(self.what, Task):
            return self.what.job
        return self.what.record.job if isinstance(self.what, Waiting) else self.what.letter.job


def header(stage: Stage) -> bytes:
    """The first line of a file."""
    return orjson.dumps({"threadmill": "export", "format": FORMAT, "stage": stage.name, "id": secrets.token_hex(8)})


def check_header(line: bytes, stage: Stage) -> None:
    """Raises `ConfigError` if this is not the first line of a file of that stage."""
    body = _object(line)
    if body.get("threadmill") != "export":
        raise ConfigError("this is no exported file: its first line is not the header that `threadmill export` writes")
    if body.get("format") != FORMAT:
        raise ConfigError(f"its format is {body.get('format')!r}; this release reads {FORMAT}")
    if body.get("stage") != stage.name:
        raise ConfigError(f"it holds work of stage {body.get('stage')!r}, not of {stage.name}")


def to_line(piece: Piece, lane: Lane, version: str) -> bytes:
    """A piece that can be sent, and the version at which its key is known, as one line."""
    body: dict[str, Any] = {"queue": str(piece.place), "source": lane.source, "partition": lane.partition}
    letter = piece.letter
    if letter is not None:
        body |= {"kind": letter.kind, "reason": letter.reason, "error": letter.error, "at_ms": letter.at_ms}
    if letter is not None and letter.record is None:
        # Its very bytes: nobody may have been able to read them.
        body |= {"bytes": base64.b64encode(letter.body).decode(), "job": letter.job, "version": version}
    elif isinstance(piece.what, Task):
        task = replace(piece.what, version=version or piece.what.version, job=piece.job)
        body["task"] = orjson.Fragment(task.to_json())
    elif isinstance(piece.what, Record):
        body |= _record_body(piece.what) | {"version": version}
    if piece.history and piece.place not in STREAMS:
        body["history"] = [_death_body(death) for death in piece.history]
    if piece.place is Place.DELAYED:
        body["due_ms"] = piece.at_ms
    return orjson.dumps({name: value for name, value in body.items() if value not in ("", 0)})


def can_be_sent(piece: Piece) -> bool:
    """Whether it can be written down so that it can be put back."""
    if piece.letter is not None and piece.letter.kind == "task":
        return True
    return piece.readable and piece.key != ""


def from_line(line: bytes, deployment: Deployment, stage: Stage) -> Parcel:
    """Read and check a line; `ConfigError` or `TaskError` says what is wrong with it."""
    body = _object(line)
    place = _place(_take(body, "queue", str, ""))
    source = deployment.source(_take(body, "source", str, ""))
    partition = _take(body, "partition", int, 0)
    what: Task | Waiting | Parked
    if place is Place.DEAD:
        what = _parked(body, source.name, stage)
    elif place in STREAMS:
        what = _task(body, source.name, stage)
    else:
        due_ms = _counted(body, "due_ms") if place is Place.DELAYED else None
        record, key, version = _record(body, source.name, stage)
        what = Waiting(record, key, version, due_ms)
    if body:
        raise ConfigError(f"it has unknown fields: {', '.join(sorted(body))}")
    if not isinstance(what, Parked):
        source.rules(stage.name).check(what.key, what.params if isinstance(what, Task) else {})
    home = deployment.lane_of(source, what.key)
    lanes = [lane for lane in deployment.lanes(source.name) if lane.partition == partition]
    return Parcel(lanes[0] if lanes else home, place, what)


# Bodies ---------------------------------------------------------------------------------------------------------------


def _record_body(record: Record) -> dict[str, Any]:
    return {
        "job": record.job,
        "run": record.run,
        "priority": record.priority,
        "deliveries": record.deliveries,
        "failures": record.failures,
        "payload": orjson.Fragment(record.payload),
    }


def _record(body: dict[str, Any], source: str, stage: Stage) -> tuple[Record, str, str]:
    """The record, its key, and the version at which that is known."""
    payload = orjson.dumps(_take(body, "payload", dict, {}))
    key, version = reference_of(payload).key, _take(body, "version", str, "")
    job, run = _take(body, "job", str, ""), _take(body, "run", str, "")
    if not key:
        raise ConfigError('its payload names no key: it wants {"k": "<id>"}')
    Task(stage.name, source, key, job=job, version=version).checked()
    if not _RUN.fullmatch(run):
        raise ConfigError("its run is not letters and digits")
    priority = _take(body, "priority", int, 0)
    if abs(priority) >= 2 * EXPRESS_PRIORITY:
        raise ConfigError(f"its priority does not lie between ±{2 * EXPRESS_PRIORITY}")
    deliveries, failures = (_counted(body, name) for name in ("deliveries", "failures"))
    history = written(_history(body))
    return Record(job, run, priority, deliveries, failures, history, payload), key, version


def _task(body: dict[str, Any], source: str, stage: Stage) -> Task:
    task = _take(body, "task", dict, None)
    return Task.from_json(orjson.dumps(task), source=source, stage=stage.name)


def _parked(body: dict[str, Any], source: str, stage: Stage) -> Parked:
    kind, reason = _take(body, "kind", str, ""), _take(body, "reason", str, "")
    error, at_ms = _take(body, "error", str, ""), _counted(body, "at_ms")
    if kind == "request":
        record, key, version = _record(body, source, stage)
        return Parked(DeadLetter.of(record, reason, error, at_ms), key, version)
    if kind != "task":
        raise ConfigError(f"a letter's kind is request or task, not {kind!r}")
    job, version, history = _take(body, "job", str, ""), _take(body, "version", str, ""), _history(body)
    Task(stage.name, source, "any", job=job, version=version).checked()
    try:
        data = base64.b64decode(_take(body, "bytes", str, ""), validate=True)
    except binascii.Error as problem:
        raise ConfigError(f"its bytes are no base64: {problem}") from None
    try:
        key = Task.from_json(data, source=source, stage=stage.name).key
    except TaskError:
        key = ""
    return Parked(DeadLetter("", reason, kind, at_ms, error, job, data, 0, 0, history), key, version)


def _death_body(death: Death) -> dict[str, Any]:
    return {
        "at_ms": death.at_ms,
        "reason": death.reason,
        "deliveries": death.deliveries,
        "failures": death.failures,
        "error": death.error,
    }


def _history(body: dict[str, Any]) -> tuple[Death, ...]:
    deaths = []
    for death in _take(body, "history", list, []):
        if not isinstance(death, dict):
            raise ConfigError("its history is not a list of objects")
        at_ms, deliveries, failures = (_counted(death, name) for name in ("at_ms", "deliveries", "failures"))
        reason, error = _take(death, "reason", str, ""), _take(death, "error", str, "")
        deaths.append(Death(at_ms, reason, deliveries, failures, error))
    return tuple(deaths)


# Values ---------------------------------------------------------------------------------------------------------------


def _object(line: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"it is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ConfigError("it is not a JSON object")
    return body


def _take(body: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = body.pop(name, default)
    if type(value) is not kind:
        raise ConfigError(f"its {name} is missing" if value is None else f"its {name} is not {kind.__name__}")
    return value


def _counted(body: dict[str, Any], name: str) -> int:
    value: int = _take(body, name, int, 0)
    if not 0 <= value < 2**53:
        raise ConfigError(f"its {name} is below zero, or too large")
    return value


def _place(name: str) -> Place:
    allowed = (*STREAMS, *QUEUES, Place.DEAD)
    if name not in tuple(map(str, allowed)):
        raise ConfigError(f"its queue is {name!r}; there are {', '.join(allowed)}")
    return Place(name)
