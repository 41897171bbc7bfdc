"""A task: what one stage is asked to collect, by whom and why.

Outside, a task is a small JSON object (`{"key": "42"}` is enough); inside, the fields of a stream entry, packed so that
a waiting task costs tens of bytes. A task names a key, never a URL: URLs are built from the source's templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import orjson

from threadmill.model.errors import TaskError
from threadmill.model.stages import stage_named

VERSION = 1
MAX_BYTES = 16_384
"""A task larger than this is refused: a task is a key and a few parameters, never a document."""

EXPRESS_PRIORITY = 1_000_000
"""Priority of what an operator asked for by hand; every queue order serves it first."""

_MAX_NUMBER = 2**53
"""Below it a number is the same in JSON everywhere, and can be counted up."""
_JOB = re.compile(r"(?!events$)[A-Za-z0-9_-]{0,40}")
_KEY = re.compile(r"[^\x00-\x1f\x7f]{1,512}")


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Times are ms since 1970 on Redis's clock; all text is UTF-8."""

    stage: str
    source: str
    key: str
    """What to collect: a forum id for `list`, a post id for `detail` and `comment`."""
    params: Mapping[str, str] = field(default_factory=dict)
    """What the source's URL templates need besides the key, such as a slug."""
    priority: int = 0
    """Larger comes first."""
    job: str = ""
    """The job this work belongs to; every descendant carries it."""
    depth: int = 0
    """Hand-offs between this task and the root task of its job."""
    attempts: int = 0
    """How often this task was replayed from the dead letters."""
    parent: str = ""
    """The key of the task whose page submitted this one."""
    trace: str = ""
    """A correlation id given by the submitter, carried down unchanged."""
    version: str = ""
    """The version that made it worth collecting, e.g. the post's comment count."""
    known: str = ""
    """The version that was known before; set by the store when a version moved."""
    force: bool = False
    """Collect it even if its version is known."""
    cascade: bool = False
    """Force what it hands down as well."""
    full: bool = False
    """Scan the whole board, known posts or not; forces nothing."""
    submitted_at: int = 0

    def to_json(self) -> bytes:
        """The task as versioned JSON; defaults are left out."""
        body: dict[str, Any] = {"v": VERSION, "stage": self.stage, "source": self.source, "key": self.key}
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                body[name] = dict(value) if name == "params" else value
        return orjson.dumps(body)

    @classmethod
    def from_json(cls, data: bytes | str, *, source: str, stage: str) -> Task:
        """Read a task that arrived at `stage` of `source`; either may be left out of it, or must agree.

        Raises `TaskError` with reason too-large, not-json, unknown-version, unknown-stage, unknown-source, wrong-stage
        or malformed.
        """
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        if len(data) > MAX_BYTES:
            raise TaskError("too-large", f"the task has {len(data)} bytes; at most {MAX_BYTES} are allowed")
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise TaskError("not-json", f"the task is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise TaskError("malformed", "the task is not a JSON object")
        version = body.pop("v", VERSION)
        if type(version) is not int or version != VERSION:
            raise TaskError("unknown-version", f"task version {version!r} is unknown; this release reads {VERSION}")
        named = body.pop("stage", stage)
        if named != stage and (not isinstance(named, str) or stage_named(named).name != stage):
            raise TaskError("wrong-stage", f"a task for stage {named!r} arrived at stage {stage!r}")
        if (site := body.pop("source", source)) != source:
            raise TaskError("unknown-source", f"a task for source {site!r} arrived at source {source!r}")
        _check(body)
        return cls(stage=stage, source=source, **body)

    def checked(self) -> Task:
        """The task itself, if it would be accepted from outside; else `TaskError("malformed")`."""
        _check({"key": self.key, **{name: v for name, d in _DEFAULTS.items() if (v := getattr(self, name)) != d}})
        return self

    def extras(self) -> bytes:
        """What differs from the defaults and has no field of its own, as JSON; empty when nothing does."""
        extra = {
            short: dict(value) if isinstance(value, Mapping) else value
            for short, name in _SHORT.items()
            if (value := getattr(self, name)) != _DEFAULTS[name]
        }
        return orjson.dumps(extra) if extra else b""

    @classmethod
    def from_fields(cls, entry: Mapping[bytes, bytes], *, source: str, stage: str, entry_id: bytes) -> Task:
        """Read a stream entry in either form; raises `TaskError` as `from_json` does."""
        if (outside := entry.get(b"task")) is not None:
            task = cls.from_json(outside, source=source, stage=stage)
            if b"j" not in entry:
                return task
            # A replayed task is counted under the job its letter had: the books know it by no other.
            job, deaths = entry[b"j"].decode("utf-8", "replace"), entry.get(b"h", b"").count(b"\x1e")
            return replace(task, job=job, attempts=deaths).checked()
        try:
            extra = orjson.loads(entry[b"x"]) if b"x" in entry else {}
            body = {"key": entry[b"k"].decode()} | {_SHORT[short]: value for short, value in extra.items()}
            body |= {_PACKED[short]: value.decode() for short, value in entry.items() if short != b"x"}
            body["depth"] = int(body.get("depth", 0))
            _check(body)
            return cls(stage=stage, source=source, submitted_at=int(entry_id.split(b"-")[0]), **body)
        except (KeyError, ValueError, AttributeError, TypeError) as error:
            raise TaskError("malformed", f"the entry is no task ({error!r}); push one JSON field `task`") from None


_DEFAULTS: dict[str, Any] = {
    f.name: f.default if f.name != "params" else {} for f in fields(Task) if f.name not in ("stage", "source", "key")
}
_PACKED = {b"k": "key", b"p": "parent", b"j": "job", b"d": "depth", b"o": "known", b"v": "version"}
"""Fields of a stream entry, besides `x`; all but `k` may be left out."""
_SHORT = {
    "a": "params",
    "p": "priority",
    "n": "attempts",
    "t": "trace",
    "f": "force",
    "c": "cascade",
    "w": "full",
}
_TYPES: dict[str, type] = {name: type(default) for name, default in _DEFAULTS.items()}


def _check(body: dict[str, Any]) -> None:
    """Strict: known names only, each of its own type, a key that can be written into a record."""
    if unknown := body.keys() - _DEFAULTS.keys() - {"key"}:
        raise TaskError("malformed", f"the task has unknown fields: {', '.join(sorted(unknown))}")
    key = body.get("key")
    if isinstance(key, int) and not isinstance(key, bool):
        key = body["key"] = str(key)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise TaskError("malformed", "the task's key must be text of 1 to 512 characters without control characters")
    for name, value in body.items():
        if name != "key" and type(value) is not _TYPES[name]:
            raise TaskError("malformed", f"the task's {name} must be {_TYPES[name].__name__}")
    if not _JOB.fullmatch(body.get("job", "")):
        raise TaskError("malformed", "a job id is at most 40 letters, digits, '_' and '-', and not `events`")
    if abs(body.get("priority", 0)) >= EXPRESS_PRIORITY:
        raise TaskError("malformed", f"a priority lies between ±{EXPRESS_PRIORITY - 1}")
    for name in ("depth", "attempts", "submitted_at"):
        if not 0 <= body.get(name, 0) < _MAX_NUMBER:
            raise TaskError("malformed", f"the task's {name} lies between 0 and {_MAX_NUMBER - 1}")
    for name, value in body.get("params", {}).items():
        if not isinstance(value, str):
            raise TaskError("malformed", f"the task's parameter {name!r} must be text")
