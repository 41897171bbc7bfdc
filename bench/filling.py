"""Filling Redis with work and with remembered ids, fast: loops inside Redis over the product's own Lua."""

import secrets
from collections.abc import Sequence

from redis import Redis

from threadmill.crawl.reference import PageReference
from threadmill.model.keys import StageKeys
from threadmill.model.task import Task
from threadmill.store.filters import Dupefilter
from threadmill.store.orders import PRIORITY
from threadmill.store.scripts import ROOT, Script

FIRST_POST = 4_000_000
"""Post ids as a forum of some years has them: seven digits."""
_CHUNK = 20_000
"""Elements a script call: a few tens of ms."""
_LIBRARY = ROOT.joinpath("lib/work.lua").read_text(encoding="utf-8")

_REQUESTS = """
local ours = cjson.decode(ARGV[1])
for at = tonumber(ARGV[2]), tonumber(ARGV[2]) + tonumber(ARGV[3]) - 1 do
  local seq = sequence(KEYS[2], 1)
  local payload = string.gsub(ours.payload, "KEY", string.format("%.0f", at))
  place(KEYS[1], member_of(seq, compose(ours.job, string.format("%.0f", seq), "0", "0", "0", "", payload)), "0", score)
end
redis.call("HINCRBY", KEYS[2], "accepted", ARGV[3])
"""

_FINGERPRINTS = """
math.randomseed(tonumber(ARGV[1]))
for _ = 1, tonumber(ARGV[2]) do
  local id = string.format("%d%09d", math.random(1, 9223372035), math.random(0, 999999999))
  filter.add(KEYS[1], "1", math.random(2) == 1 and id or "-" .. id, "")
end
"""

_VERSIONS = """
for at = tonumber(ARGV[1]), tonumber(ARGV[1]) + tonumber(ARGV[2]) - 1 do
  filter.add(KEYS[1], "", string.format("%.0f", at), ARGV[3])
end
"""


def queue_requests(client: Redis, keys: StageKeys, job: str, count: int, first: int = FIRST_POST) -> None:
    """Queues `count` requests as admission does, each its post's first page and the only one of its run."""
    task = Task("detail", "bbs", "KEY", depth=1)
    payload = PageReference.of(task, 1).dump().decode()
    script = Script("queue", _LIBRARY + PRIORITY.lua.bound_to("score") + _REQUESTS)
    ours = f'{{"job": "{job}", "payload": {_quoted(payload)}}}'
    for at, size in _chunks(count):
        _run(client, script, (keys.requests, keys.stats), (ours, first + at, size))


def remember_fingerprints(client: Redis, dupefilter: Dupefilter, root: str, count: int) -> None:
    """Has a filter remember `count` random 64-bit fingerprints, all in one run."""
    script = Script("remember", _LIBRARY + dupefilter.lua.bound_to("filter") + _FINGERPRINTS)
    seed = secrets.randbelow(2**30)
    for at, size in _chunks(count):
        _run(client, script, (root,), (seed + at, size))


def remember_versions(client: Redis, dupefilter: Dupefilter, root: str, count: int, version: str) -> None:
    """Has a task filter remember `count` post ids, each at `version`."""
    script = Script("remember", _LIBRARY + dupefilter.lua.bound_to("filter") + _VERSIONS)
    for at, size in _chunks(count):
        _run(client, script, (root,), (FIRST_POST + at, size, version))


def _chunks(count: int) -> list[tuple[int, int]]:
    return [(at, min(_CHUNK, count - at)) for at in range(0, count, _CHUNK)]


def _run(client: Redis, script: Script, keys: Sequence[str], args: Sequence[str | int]) -> None:
    client.eval(script.text, len(keys), *keys, *args)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
