"""Bytes of Redis memory a waiting task, a queued request, a seen id and the rest, beside scrapy-redis's structures.

Each structure alone on an empty server: `used_memory` of INFO before and after it is filled, from a connection of its
own while no other is open, divided by the number of elements. So everything is in it: keys, tables, the allocator's
rounding. Tasks, requests, leases, letters and items are made by Threadmill's verbs with what its services say; those
of scrapy-redis by scrapy-redis's code. Remembered ids are added in a loop inside Redis, by the filters' own Lua. The
server is the embedded one, with its settings (docs/redis-keys.md); hash tables double, so other sizes may lie a few
bytes higher or lower.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from redis import Redis

from bench import memory_ours, memory_peer
from bench.callbacks import Item, parse_comments
from bench.filling import FIRST_POST, remember_fingerprints, remember_versions
from bench.pages import comment_pages, render
from bench.plots import Plot
from bench.progress import say
from bench.redis_server import redis_server
from bench.report import Claim, Report
from threadmill.store.calls import run
from threadmill.store.filters import REQUEST_FILTERS, ExactFilter, VersionedFilter, see

Fill = Callable[[Redis, int], None]
FULL, SHORT = (100_000, 1_000_000), (10_000,)
MOST_SEEN = 10_000_000
_SPARE_BYTES = 4e9
"""Memory that must be free for the largest size, which takes up to 1.3 GB."""
_SEEN = "{bbs.0}:detail:seen"
_BOUNDS = {"waiting task": 30.0, "queued request": 150.0, "seen id, exact": 10.0}


@dataclass(frozen=True, slots=True)
class Structure:
    """Something that is kept many times over. `before` fills what must be there already and is not counted."""

    name: str
    fill: Fill
    peer: Fill | None = None
    before: Fill | None = None
    most: int = 1_000_000


def structures() -> Sequence[Structure]:
    """Everything that is measured, in the order of the table."""
    few = 100_000
    seen = [
        Structure(
            f"seen id, {name}",
            partial(_remember, dupefilter),
            memory_peer.fingerprints if name == "exact" else None,
            most=MOST_SEEN
            if name in ("exact", "set")
            else 1_000_000,  # the window's own limit; Bloom's is the patience
        )
        for name, dupefilter in REQUEST_FILTERS.items()
        if name != "run"  # one run of a million pages is `set`
    ]
    return [
        Structure("waiting task", memory_ours.tasks, memory_peer.start_urls),
        Structure(
            "waiting task, post known before", memory_ours.moved_tasks, before=memory_ours.remember_older, most=few
        ),
        Structure("queued request", memory_ours.requests, memory_peer.requests),
        Structure("leased page", memory_ours.leased, most=few),
        Structure("dead letter", memory_ours.letters, most=few),
        Structure("item", memory_ours.items_of(_pages), memory_peer.items_of(_pages), most=few),
        *seen,
        Structure("known task, version 12", partial(_remember_version, "12")),
        Structure("known task, version time|12", partial(_remember_version, memory_ours.VERSION)),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m bench memory`."""
    parser.add_argument("--only", default="", help="structures whose name has this in it")


def measure(options: argparse.Namespace) -> Report:
    """Fills every structure at every size, ours and theirs in turn."""
    sizes = list(SHORT if options.short else FULL)
    if not options.short and free_bytes() > _SPARE_BYTES:
        sizes.append(MOST_SEEN)
    ours: dict[str, dict[int, float]] = {}
    peers: dict[str, dict[int, float]] = {}
    with redis_server() as port:
        check_exactness(port)
        for structure in structures():
            for size in [size for size in sizes if size <= max(structure.most, sizes[0])]:
                if options.only not in structure.name:
                    continue
                ours.setdefault(structure.name, {})[size] = bytes_each(port, structure.fill, size, structure.before)
                if structure.peer and size <= FULL[-1]:
                    peers.setdefault(structure.name, {})[size] = bytes_each(port, structure.peer, size)
                say(f"{structure.name}, {size:,}: {ours[structure.name][size]:.1f} B")
    return _report(ours, peers, claimed=FULL[-1] if FULL[-1] in sizes else sizes[-1])


def bytes_each(port: int, fill: Fill, count: int, before: Fill | None = None) -> float:
    """Bytes that one of `count` elements takes; the server is emptied first."""
    with Redis(port=port, socket_timeout=60) as client:
        client.flushall()
        fill(client, 64)  # scripts are kept, too, but not for each element
        client.flushall()
        if before:
            before(client, count)
    held = _used_memory(port)
    with Redis(port=port, socket_timeout=60) as client:
        fill(client, count)
    return (_used_memory(port) - held) / count


def check_exactness(port: int) -> None:
    """The smallest exact filter, beside a hundred thousand ids: knows what it saw, nothing else, and can forget."""
    texts = [f"post/{n}" for n in range(5_000)]
    with Redis(port=port, socket_timeout=60) as client:
        _remember(ExactFilter(), client, 100_000)

        def new(some: Sequence[str]) -> int:
            return sum(answer.new for answer in run(client, see(ExactFilter(), _SEEN, [(text, "") for text in some])))

        answers = [new(texts), new(texts)]
        for text in texts[:1_000]:
            fingerprint = ExactFilter().id_of(text)
            client.srem(f"{_SEEN}:{int(fingerprint[-7:]) % ExactFilter().buckets}", fingerprint)
        answers += [new(texts[1_000:]), new(texts[:1_000])]
    if answers != [5_000, 0, 0, 1_000]:
        raise RuntimeError(f"the exact filter is not exact, or does not forget: {answers}")


def _used_memory(port: int) -> int:
    with Redis(port=port) as client:
        while len(client.client_list()) > 1:  # a connection that was closed is still being cleared away
            pass
        return int(client.info("memory")["used_memory"])


def free_bytes() -> float:
    """Memory that can be had, by /proc/meminfo; 0 where there is none to ask."""
    if not (table := Path("/proc/meminfo")).exists():
        return 0.0
    lines = table.read_text(encoding="ascii").splitlines()
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 0.0)


def _remember(dupefilter: Any, client: Redis, count: int) -> None:
    remember_fingerprints(client, dupefilter, _SEEN, count)


def _remember_version(version: str, client: Redis, count: int) -> None:
    remember_versions(client, VersionedFilter(), _SEEN, count, version)


def _pages() -> Iterator[list[Item]]:
    """The items of comment pages, one page after the other, without end."""
    for post in itertools.count(FIRST_POST):
        for number in range(1, comment_pages(post) + 1):
            if body := render(f"/BBS/comment/{post}/{number}".encode()):
                yield parse_comments(body).items


def _report(ours: Mapping[str, Mapping[int, float]], peers: Mapping[str, Mapping[int, float]], claimed: int) -> Report:
    rows = []
    for name, by_size in ours.items():
        for size, own in by_size.items():
            peer = peers.get(name, {}).get(size)
            rows.append(
                (
                    name,
                    f"{size:,}",
                    f"{own:.1f}",
                    "-" if peer is None else f"{peer:.1f}",
                    "-" if peer is None else f"{peer / own:.1f}",
                )
            )
    claims = [  # of smaller numbers they do not hold: each structure has something that is there once
        Claim(f"bytes a {name}, {claimed:,} of them", ours[name][claimed], bound, "B", at_most=True)
        for name, bound in _BOUNDS.items()
        if claimed == FULL[-1] and claimed in ours.get(name, {})
    ]
    return Report(
        "memory",
        ("structure", "elements", "B each", "scrapy-redis", "ratio"),
        rows,
        {"bytes_each": ours, "scrapy_redis_bytes_each": peers},
        claims,
        _plots(ours, peers),
    )


def _plots(ours: Mapping[str, Mapping[int, float]], peers: Mapping[str, Mapping[int, float]]) -> list[Plot]:
    both = {
        "threadmill": [(name, ours[name][max(peers[name])]) for name in peers],
        "scrapy-redis": [(name, by_size[max(by_size)]) for name, by_size in peers.items()],
    }
    seen = {name: sorted(by_size.items()) for name, by_size in ours.items() if name.startswith(("seen", "known"))}
    plots = [
        Plot("memory", "Redis memory", "", "bytes each", both if peers else {}),
        Plot("memory-seen", "Remembering ids", "ids", "bytes each", seen, log="x"),
    ]
    return [plot for plot in plots if plot.series]  # some may have been left out by --only
