"""Filling Redis with work and with remembered ids, fast: loops inside Redis over the product's own Lua."""

import secrets
from collections.abc import Sequence

from redis import Redis

from threadmill.crawl.reference import PageReference
from threadmill.model.keys import StageKeys
from threadmill.model.task import Task
from threadmill.store.filters import Dupefilter, VersionedFilter
from threadmill.store.orders import PRIORITY
from threadmill.store.scripts import ROOT, Script

FIRST_POST = 4_000_000
"""Post ids as a forum of some years has them: seven digits."""
_CHUNK = 20_000
"""Elements a script call: a few tens of ms."""
_COMPACT = "hash-max-ziplist-entries"
"""Its older name is known to every version."""
_LIBRARY = ROOT.joinpath("lib/work.lua").read_text(encoding="utf-8")

_REQUESTS = """
local job, head, tail = ARGV[1], string.match(ARGV[2], "^(.*)KEY(.*)$")
local first, count = tonumber(ARGV[3]), tonumber(ARGV[4])
local from = sequence(KEYS[2], count)
for n = 0, count - 1 do
  local payload = head .. string.format("%.0f", first + n) .. tail
  local record = compose(job, string.format("%.0f", from + n), "0", "0", "0", "", payload)
  place(KEYS[1], "", "", member_of(from + n, record), "0", score)
end
redis.call("HINCRBY", KEYS[2], "accepted", count)
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
    payload = PageReference.of(task, 1).dump()
    script = Script("queue", _LIBRARY + PRIORITY.lua.bound_to("score") + _REQUESTS)
    for at, size in _chunks(count):
        _run(client, script, (keys.requests, keys.stats), (job, payload, first + at, size))


def remember_fingerprints(client: Redis, dupefilter: Dupefilter, root: str, count: int) -> None:
    """Has a filter remember `count` random 64-bit fingerprints, all in one run."""
    script = Script("remember", _LIBRARY + dupefilter.lua.bound_to("filter") + _FINGERPRINTS)
    seed = secrets.randbelow(2**30)
    for at, size in _chunks(count):
        _run(client, script, (root,), (seed + at, size))


def remember_versions(client: Redis, dupefilter: VersionedFilter, root: str, count: int, version: str) -> None:
    """Has a task filter remember `count` post ids, each at `version`."""
    script = Script("remember", _LIBRARY + dupefilter.lua.bound_to("filter") + _VERSIONS)
    compact = int(client.config_get(_COMPACT)[_COMPACT] or 0)
    if count > 1.5 * compact * dupefilter.buckets:  # then no bucket stays compact, and need not become so first
        client.config_set(_COMPACT, 0)
    for at, size in _chunks(count):
        _run(client, script, (root,), (FIRST_POST + at, size, version))
    client.config_set(_COMPACT, compact)


def _chunks(count: int) -> list[tuple[int, int]]:
    return [(at, min(_CHUNK, count - at)) for at in range(0, count, _CHUNK)]


def _run(client: Redis, script: Script, keys: Sequence[str], args: Sequence[str | bytes | int]) -> None:
    client.eval(script.text, len(keys), *keys, *args)
