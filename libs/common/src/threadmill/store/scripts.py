"""Lua verbs, loaded from `lua/`, one file each, and put together with the strategies they use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha1
from importlib.resources import files

ROOT = files("threadmill.store") / "lua"


@dataclass(frozen=True)
class Script:
    """A Lua script and the digest Redis knows it by."""

    name: str
    text: str

    @cached_property
    def sha(self) -> str:
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Fragment:
    """A strategy's Lua: a file that returns a value, and the numbers it reads as `P.<name>`."""

    path: str
    params: tuple[tuple[str, float], ...] = ()

    def bound_to(self, name: str) -> str:
        params = ", ".join(f"{key} = {value!r}" for key, value in self.params)
        return f"local {name} = (function()\nlocal P = {{ {params} }}\n{_read(self.path)}\nend)()\n"


def compose(verb: str, strategies: Mapping[str, Fragment] | None = None) -> Script:
    """The verb's script: the shared library, its strategies each under its name, and the verb itself."""
    parts = [_read("lib/work.lua")]
    parts += [fragment.bound_to(name) for name, fragment in (strategies or {}).items()]
    parts.append(_read(f"{verb}.lua"))
    return Script(verb, "\n".join(parts))


@cache
def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
