"""A site that answers wrongly in every way we know: nothing is given up that a patient person would have got."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from chaos.oracle import assert_whole
from end_to_end.pipeline import Pipeline, pipeline
from threadmill.store.letters import dead_letters
from waiting import wait_for

SIZE = ["--forums", "2", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "4"]
"""Forty posts; with their lists and comments, some eighty pages."""
FORUMS = ["1", "2"]
HARMS = {
    "not whole": "cut,cut_chunked,cut_unmarked,cut_gzip,not_gzip,length_too_long,length_too_short",
    "rubbish": "html,empty,shapeless,not_utf8",
    "circles": "loop",
    "put off": "unavailable",
    "too much": "endless,length_of_a_tebibyte,bomb,bomb_in_bomb",
}
ALLOWED_MB = 400
"""More than a worker has at rest: 16 downloads at a time, none of which may pass 16 MiB, and what copies them."""


@pytest.mark.scenario(24)
@pytest.mark.chaos
@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_site_that_is_wrong_at_every_third_answer_gives_all_it_has(tmp_path: Path, harm: str) -> None:
    # Given a forum that does this to 35 % of all requests
    wrong = ["--harm", harm, "--harm-rate", "0.35", "--seed", "120"]
    with pipeline(tmp_path, forum=[*SIZE, *wrong], retry_base_ms=100) as rig:
        rig.start()
        # When it is collected
        job = rig.submit("list", FORUMS).job
        rig.wait_until_done(job)
        # Then all there is was stored with its true content, and harm was met often
        assert_whole(rig, job)
        assert sum(harmed(rig).values()) > 15


@pytest.mark.scenario(24)
@pytest.mark.chaos
def test_nothing_is_fetched_off_the_sources_hosts(tmp_path: Path, seed: int) -> None:
    # Given other listeners on this machine, and a forum that redirects every third request to them, to the cloud's
    # metadata, to private networks, and to the same places in disguise
    wrong = ["--harm", "away", "--harm-rate", "0.35", "--seed", str(seed % 1000)]
    with listening() as other, pipeline(tmp_path, forum=[*SIZE, *wrong], retry_base_ms=100) as rig:
        rig.turn(away=" ".join(places(other.port, rig.forum_url)))
        peers = Peers(rig, ours={int(rig.forum_url.rpartition(":")[2]), rig.redis.port})
        rig.start()
        # When it is collected, and all connections of its processes are watched
        job = rig.submit("list", FORUMS).job
        wait_for(lambda: peers.look() or rig.job(job).finished, 120, every=0.1, what="all to be collected")
        # Then it was led away often, all was stored, and nobody was asked but the forum and Redis
        rig.wait_until_done(job)
        assert (other.connections, peers.strangers) == (0, set())
        assert harmed(rig)["away"] > 15
        assert peers.looks > 10
        assert_whole(rig, job)
        # And the listeners do count
        socket.create_connection(("127.0.0.1", other.port), 5).close()
        wait_for(lambda: other.connections == 1, what="the listener to count")


@pytest.mark.scenario(24)
@pytest.mark.chaos
@pytest.mark.parametrize("harm", ["endless", "bomb", "bomb_in_bomb"])
def test_bombs_and_endless_bodies_do_not_fill_the_memory(tmp_path: Path, harm: str) -> None:
    # Given a worker of each stage at rest, and a forum whose every post is endless, a bomb, or a bomb in a bomb
    with pipeline(tmp_path, forum=SIZE, retry_base_ms=100) as rig:
        rig.start()
        rest = wait_for(lambda: memory_mb(rig), what="the workers")
        rig.turn(harm=harm, harm_rate=1.0)
        # When sixteen at a time are fetched, again and again, and then the forum recovers
        job = rig.submit("detail", [str(post) for post in range(100_001, 100_041)]).job
        peak = 0.0
        while sum(harmed(rig).values()) < 64:
            peak = max(peak, memory_mb(rig))
        rig.turn(harm_rate=0.0)
        rig.wait_until_done(job)
        # Then the worker, still the same, never had more than it may
        assert peak - rest < ALLOWED_MB, f"resident at rest {rest:.0f} MB, at most {peak:.0f} MB"
        assert rig.fleet.restarts == 0
        assert rig.job(job).done["detail"] == 40


@pytest.mark.scenario(24)
@pytest.mark.chaos
def test_what_never_ends_is_parked_and_its_neighbours_are_done(tmp_path: Path) -> None:
    # Given forty posts, seven of which are poison for ever, each in its way
    poison = {
        "endless": "too-large",
        "bomb_in_bomb": "too-large",
        "cut": "unreachable",
        "html": "unreadable",
        "shapeless": "unreadable",
        "loop": "redirects",
        "away": "off-host",
    }
    posts = {str(100_003 + 5 * n): harm for n, harm in enumerate(poison)}
    at = " ".join(f"/BBS/post/{post}={harm}" for post, harm in posts.items())
    with pipeline(tmp_path, forum=[*SIZE, "--harm-at", at], retry_base_ms=50, max_failures=3) as rig:
        rig.turn(away="http://169.254.169.254/latest/meta-data/")
        rig.start()
        # When the forum is collected
        job = rig.submit("list", FORUMS).job
        done = rig.wait_until_done(job)
        # Then they were tried as often as they may be, and parked with the reason; their neighbours are stored
        hits = rig.hits()
        tries = {harm: hits[f"/BBS/post/{post}"] for post, harm in posts.items()}
        assert tries == dict.fromkeys(poison, 3) | {"loop": 3 * 21}
        assert parked(rig, "detail") == {post: poison[harm] for post, harm in posts.items()}
        assert (done.done["detail"], done.dead["detail"]) == (33, 7)
        assert_whole(rig, job, dead=[f'"{post}"' for post in posts])


@pytest.mark.scenario(24)
@pytest.mark.chaos
def test_a_body_that_drips_for_ever_is_cut_off(tmp_path: Path) -> None:
    # Given a worker with two hands, and two posts that come a byte a second, without end
    at = "/BBS/post/100001=drip /BBS/post/100002=drip"
    with pipeline(tmp_path, forum=[*SIZE, "--harm-at", at], concurrency=2, max_failures=1) as rig:
        rig.start()
        dripping = rig.submit("detail", ["100001", "100002"]).job
        wait_for(lambda: sum(harmed(rig).values()) == 2, what="both hands to be held")
        # When others wait behind them
        job = rig.submit("detail", [str(post) for post in range(100_003, 100_041)]).job
        # Then after the download timeout (30 s) the hands are free, and all is done but those two
        rig.wait_until_done(job, seconds=60)
        assert rig.job(dripping).dead == {"detail": 2}
        assert parked(rig, "detail") == {"100001": "unreachable", "100002": "unreachable"}
        assert rig.job(job).done["detail"] == 38


def places(port: int, forum: str) -> list[str]:
    """Where nobody may be led: other ports and addresses, and spellings that hide them."""
    return [
        f"http://127.0.0.1:{port}/",
        f"//127.0.0.1:{port}/BBS/post/100001",
        f"http://[::1]:{port}/",
        f"http://localhost:{port}/",
        f"http://2130706433:{port}/",
        f"http://127.1:{port}/",
        f"http://0:{port}/",
        f"{forum}@127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}\\@{forum.removeprefix('http://')}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://192.168.0.1/",
        "http://example.com/",
        "file:///etc/passwd",
        "http://[::1",
    ]


@dataclass
class Listener:
    """Counts who connects; nobody should."""

    port: int
    connections: int = 0


@contextmanager
def listening() -> Iterator[Listener]:
    """Listeners on one free port of 127.0.0.1 and, where there is IPv6, of ::1."""
    sockets = [socket.create_server(("127.0.0.1", 0))]
    listener = Listener(sockets[0].getsockname()[1])
    with suppress(OSError):
        sockets.append(socket.create_server(("::1", listener.port), family=socket.AF_INET6))

    def count(server: socket.socket) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                server.accept()[0].close()
                listener.connections += 1

    for server in sockets:
        threading.Thread(target=count, args=(server,), daemon=True).start()
    try:
        yield listener
    finally:
        for server in sockets:
            server.close()


@dataclass
class Peers:
    """Looks at whom the collector's processes are connected, or connecting, to."""

    rig: Pipeline
    ours: set[int]
    strangers: set[tuple[str, int]] = field(default_factory=set)
    looks: int = 0

    def look(self) -> None:
        """Take down every peer that is not the forum or Redis."""
        self.looks += 1
        for process in processes(self.rig):
            with suppress(psutil.Error):
                peers = {tuple(c.raddr) for c in process.net_connections("inet") if c.raddr}
                self.strangers |= {peer for peer in peers if peer[0] != "127.0.0.1" or peer[1] not in self.ours}


def processes(rig: Pipeline) -> list[psutil.Process]:
    """The three stages' workers."""
    services = ("list_scanner", "detail_collector", "comment_collector")
    return [psutil.Process(pid) for service in services for pid in rig.fleet.pids(service)]


def memory_mb(rig: Pipeline) -> float:
    """Resident memory of the largest worker, once all have begun."""
    if any(not rig.books(stage)["workers"] for stage in ("list", "detail", "comment")):
        return 0.0
    return max(process.memory_info().rss for process in processes(rig)) / 1e6


def harmed(rig: Pipeline) -> dict[str, int]:
    """How often the forum did which harm."""
    with urllib.request.urlopen(f"{rig.forum_url}/hits", timeout=30) as response:
        counts: dict[str, int] = json.load(response)["harmed"]
    return counts


def parked(rig: Pipeline, stage: str) -> dict[str, str]:
    """The dead letters' keys, each with its reason."""
    letters = dead_letters(rig.deployment.client, rig.lane, stage, 1000)
    return {json.loads(letter.body)["k"]: letter.reason for letter in letters}
