"""Guarantees broken on purpose: named edits of the product's own text, for tests that ask whether the suite finds them.

`arm` breaks this process, as the hook does in every process started with CHAOS_SABOTAGE; `broken` does so for a test:
its own process (verbs composed at import stay sound there) and all it starts.
"""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from threadmill.store import scripts


class Edit(NamedTuple):
    """`place` is a Lua file (`commit.lua`), or a function in Python (`module:Class.method`)."""

    place: str
    old: str
    new: str


_SETTLED = 'redis.call("XACK", items, group, ARGV[i]) == 1'
_SUBTASK = 'seen_task.add(target.seen, "", id, version)'
_CHILD = 'id == "" or seen_request.add(seen_root, run, id, "")'
_JOB = 'fields[stage .. ":" .. field] = (fields[stage .. ":" .. field] or 0) + by'
_DELAYED = 'redis.call("ZADD", delayed, now + tonumber(wait), string.sub(member, 1, 8) .. record)'
_DONE = 'count(stats, "done", 1) count_job(job, stage, "done", 1)'
_STORE = "refused = self._until_done(lambda: self._store.write(batch.items)) if batch.items else []"
_HELD = 'redis.call("HGET", leased, lease)'
_NOBODY = 'string.rep("\\0", 8) .. compose("", "", "0", "0", "0", "", "")'
_NEWER = "new.{0} > table.c.{0}"
_OTHER = "new.{0} != table.c.{0}"
_UPSERT = "item_writer.statements:Upsert.__init__"

BREAKAGES: dict[str, tuple[Edit, ...]] = {
    "admit leaves the stream entry": (Edit("admit.lua", 'redis.call("XDEL", stream, entry)', ""),),
    "admit does not ask whether it was first": (
        Edit("admit.lua", 'if redis.call("XACK", stream, group, entry) == 1 then', "if true then"),
    ),
    "settle leaves the entry pending": (Edit("settle.lua", _SETTLED, "true"),),
    "settle leaves the entry in the stream": (
        Edit("settle.lua", 'redis.call("XDEL", items, id)', ""),
        Edit("settle.lua", "if oldest then", "if false then"),
    ),
    "commit goes through though the lease is another's": (Edit("commit.lua", _HELD, f"{_HELD} or {_NOBODY}"),),
    "every subtask is new": (Edit("commit.lua", _SUBTASK, 'true, ""'),),
    "every follow-up is new": (Edit("commit.lua", _CHILD, "true"),),
    "commit forgets the items": (Edit("commit.lua", "if collected > 0 then", "if false then"),),
    "the job's books do not move": (Edit("lib/work.lua", _JOB, f'if field ~= "done" then {_JOB} end'),),
    "the stage's books do not move": (Edit("commit.lua", 'count(stats, "accepted", queued)', ""),),
    "expired leases stay": (Edit("reclaim.lua", '"-inf", now, "LIMIT"', '"-inf", 0, "LIMIT"'),),
    "a delayed page is dropped": (Edit("delay.lua", _DELAYED, _DONE),),
    "items are settled before they are stored": (
        Edit(
            "item_writer.writer:Writer._write",
            _STORE,
            f"self._until_done(lambda: self._streams.settle(batch.entries, []))\n    {_STORE}",
        ),
    ),
    "an older row replaces a newer one": (
        Edit(_UPSERT, *(text.format("collected_at") for text in (_NEWER, _OTHER))),
        Edit(_UPSERT, *(text.format("collected_seq") for text in (_NEWER, _OTHER))),
    ),
}


def arm() -> None:
    """Break what CHAOS_SABOTAGE names, in this process and for good."""
    _break(os.environ["CHAOS_SABOTAGE"], setattr)


def broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break it for the rest of a test, here and in all processes that are started."""
    _break(name, monkeypatch.setattr)
    monkeypatch.setenv("CHAOS_SABOTAGE", name)
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tests / "chaos" / "hooks", tests))))


def _break(name: str, put: Callable[[Any, str, Any], None]) -> None:
    edits: dict[str, list[Edit]] = {}
    for edit in BREAKAGES[name]:
        edits.setdefault(edit.place, []).append(edit)
    sound = scripts._read
    texts = {place: _edited(sound(place), mine) for place, mine in edits.items() if place.endswith(".lua")}
    put(scripts, "_read", lambda path: texts.get(path) or sound(path))
    for place in edits.keys() - texts.keys():
        put(*_rewritten(place, edits[place]))


def _edited(text: str, edits: Sequence[Edit]) -> str:
    for _, old, new in edits:
        if (found := text.count(old)) != 1:
            raise ValueError(f"{old!r} is there {found} times: the breakage must follow the product's text")
        text = text.replace(old, new)
    return text


def _rewritten(place: str, edits: Sequence[Edit]) -> tuple[Any, str, Any]:
    """The owner of a function, its name, and the function it becomes."""
    module_name, _, path = place.partition(":")
    module = import_module(module_name)
    *outer, name = path.split(".")
    owner = reduce(getattr, outer, module)
    text = _edited(textwrap.dedent(inspect.getsource(getattr(owner, name))), edits)
    made: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{text}", module.__dict__, made)
    return owner, name, made[name]
