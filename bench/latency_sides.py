"""The sides of the latency benchmark: an idle stage that is asked for one thing at a time."""

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count

from redis import Redis

from bench import pages
from bench.callbacks import post_path
from bench.child import child, server
from bench.formula_forum import FormulaForum
from bench.redis_server import redis_server
from bench.services import services
from bench.start_urls import push
from bench.waits import Waits
from bench.watched_site import WatchedSite

FORUM = FormulaForum(list_pages=1, comment_pages=lambda _: 0)
HEARTBEAT_S = 5.0
"""Scrapy's `ExecutionEngine._SLOT_HEARTBEAT_INTERVAL`: how often an idle spider is asked whether it is idle."""
_GAP_S = (0.05, 0.15)  # between two submissions of one benchmark, whichever side's
_PATIENCE_S = 30.0
_SETTLE_S = 1.0  # after a spider's first page
_POSTS = count(5_000 * pages.POSTS_PER_FORUM)
_FORUMS = count(1)


class IdleSide:
    """A Redis, a site, and the way between them; `submitted` and `listed` collect what was waited."""

    def __init__(self, stack: ExitStack, delay_ms: float) -> None:
        self.site = stack.enter_context(WatchedSite(FORUM.render))
        self.near_port = stack.enter_context(redis_server())
        self.port = self.near_port
        if delay_ms:
            proxy = server("bench.proxy", "--to", str(self.near_port), "--delay-ms", str(delay_ms))
            self.port = stack.enter_context(proxy)
        self.submitted = Waits()
        """From the call that submits, until the request's last byte is at the site."""
        self.listed = Waits()
        """From the moment the site has sent a list page, until each of its posts' requests is there."""

    def wait_for_posts(self, forum: int) -> None:
        """Notes how long each post of the forum's list page was waited for."""
        sent_s = self.site.visit(f"/BBS/list/{forum}/1", _PATIENCE_S).sent_s
        for post in FORUM.posts(forum, 1):
            arrived_s = self.site.visit(post_path(post), _PATIENCE_S).arrived_s
            self.listed.ms.append((arrived_s - sent_s) * 1000)


class ThreadmillSide(IdleSide):
    """One idle worker of each of these stages."""

    def __init__(self, stack: ExitStack, delay_ms: float, lanes: int, stages: tuple[str, ...]) -> None:
        super().__init__(stack, delay_ms)
        workers = dict.fromkeys(stages, 1)
        self.services = stack.enter_context(services(self.port, self.site.url, workers, partitions=lanes))

    def warm_up(self) -> None:
        """Once the workers are there: the first page is preceded by robots.txt, and finds no connection."""
        self.services.wait_until_idle()
        for _ in range(3):
            self.ask_for_post()
            time.sleep(_GAP_S[1])
        self.submitted.ms.clear()

    def ask_for_post(self) -> None:
        post = next(_POSTS)
        begin = time.perf_counter()
        self.services.submit("detail", str(post))
        self.submitted.ms.append((self.site.visit(post_path(post), _PATIENCE_S).arrived_s - begin) * 1000)

    def ask_for_list(self) -> None:
        forum = next(_FORUMS)
        self.services.submit("list", str(forum))
        self.wait_for_posts(forum)


class ScrapyRedisSide(IdleSide):
    """Idle spiders, each with keys of its own, so that each is asked for one thing at a time."""

    def __init__(self, stack: ExitStack, delay_ms: float, spiders: int) -> None:
        super().__init__(stack, delay_ms)
        self.names = [f"forum{number}" for number in range(spiders)]
        self._redis = stack.enter_context(Redis(port=self.port))
        # A spider looks when it starts, and then every 5 s.
        self._firsts = [post_path(next(_POSTS)) for _ in self.names]
        for name, path in zip(self.names, self._firsts, strict=True):
            push(self._redis, name, self.site.url + path)
            command = [sys.executable, "-m", "bench.peers.scrapy_redis_forum"]
            stack.enter_context(child([*command, "--redis-port", str(self.port), "--name", name]))

    def wait_until_idle(self) -> None:
        """Each spider has done its first post."""
        for path in self._firsts:
            self.site.visit(path, 4 * _PATIENCE_S)
        time.sleep(_SETTLE_S)

    def ask(self, times: int, dice: random.Random) -> None:
        """Asks every spider so many times, all of them at once; every third time for a list page."""
        with ThreadPoolExecutor(len(self.names)) as pool:
            seeds = [dice.random() for _ in self.names]
            list(pool.map(lambda name, seed: self._ask(name, times, seed), self.names, seeds))

    def _ask(self, name: str, times: int, seed: float) -> None:
        dice = random.Random(seed)
        for number in range(times):
            # Over a whole heartbeat: just after one, every wait would be as long as it.
            time.sleep(dice.uniform(0, HEARTBEAT_S))
            forum, post = next(_FORUMS), next(_POSTS)
            path = f"/BBS/list/{forum}/1" if number % 3 == 0 else post_path(post)
            begin = time.perf_counter()
            push(self._redis, name, self.site.url + path)
            self.submitted.ms.append((self.site.visit(path, _PATIENCE_S).arrived_s - begin) * 1000)
            if number % 3 == 0:
                self.wait_for_posts(forum)


def pause(dice: random.Random) -> None:
    """The stage is left idle for a random time."""
    time.sleep(dice.uniform(*_GAP_S))
