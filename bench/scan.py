"""One scan of a few boards of a slow forum by one side, as the site saw it."""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil
from redis import Redis

from bench.child import child
from bench.formula_forum import FormulaForum
from bench.pages import POSTS_PER_FORUM, POSTS_PER_PAGE
from bench.redis_server import redis_server
from bench.services import services
from bench.start_urls import push
from bench.watched_site import Visit, WatchedSite

STRAGGLER_SHARE, STRAGGLER_PAGES = 0.01, 1_000
"""The first 1 % of a board's posts have 1,000 pages of comments, the others have one: a forum shows its busiest threads
first, and so all of them are there from the beginning on, which is the hardest case."""
_START_S = 60.0
_KNOWN_S = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """boards are scanned `list_pages` deep, `concurrency` pages at a time in each of the three stages.

    Every answer of the site takes `latency_s`; what is not done `limit_s` after the first list page is cut off.
    """

    boards: int
    list_pages: int
    concurrency: int
    latency_s: float
    limit_s: float

    @property
    def all_list_pages(self) -> int:
        return self.boards * self.list_pages

    def forum(self, stragglers: bool) -> FormulaForum:
        """The forum, with or without its long threads."""
        long_ones = math.ceil(STRAGGLER_SHARE * self.list_pages * POSTS_PER_PAGE) if stragglers else 0

        def comment_pages(post_id: int) -> int:
            return STRAGGLER_PAGES if post_id % POSTS_PER_FORUM < long_ones else 1

        return FormulaForum(self.list_pages, comment_pages)


@dataclass(frozen=True, slots=True)
class Crawl:
    """Processes that are about to scan.

    begin: asks them to. posts_known: how many posts were handed down so far; None where that cannot be asked.
    """

    begin: Callable[[], None]
    pids: Sequence[int]
    posts_known: Callable[[], int] | None = None


Start = Callable[[ExitStack, int, WatchedSite, Plan], Crawl]
"""Starts a side on the Redis of this port; its processes end with the stack."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What was seen.

    list_times_s: when each list page was sent, from the first one on. The rate is over the time they took, or over the
    limit if they were not done by then.
    known_s: until all posts were submitted to the next stage, or, where that cannot be asked, all list pages sent; None
    if not within the limit.
    straggler_pages: comment pages behind a thread's first.
    busiest: CPU seconds a second of the busiest process, the site among them.
    """

    list_times_s: Sequence[float]
    list_pages_per_s: float
    known_s: float | None
    posts: int
    comment_pages: int
    straggler_pages: int
    busiest: float


def scan(start: Start, plan: Plan, *, stragglers: bool) -> Scan:
    """Runs one; everything is started and stopped for it."""
    with ExitStack() as stack:
        redis_port = stack.enter_context(redis_server())
        site = stack.enter_context(WatchedSite(plan.forum(stragglers).render, plan.latency_s))
        crawl = start(stack, redis_port, site, plan)
        site.start()
        crawl.begin()
        begin = site.visit("/BBS/list/1/1", _START_S).sent_s
        cpu = [_cpu_s(pid) for pid in (*crawl.pids, os.getpid())]
        done = _wait_for_lists(site, plan, begin + plan.limit_s)
        known_s = _known_s(crawl, plan, begin) if done else None
        seconds = time.perf_counter() - begin
        used = [_cpu_s(pid) - before for pid, before in zip((*crawl.pids, os.getpid()), cpu, strict=True)]
        return seen(list(site.visits), plan, begin, known_s, max(used) / seconds)


def threadmill(stack: ExitStack, redis_port: int, site: WatchedSite, plan: Plan) -> Crawl:
    """One process a stage."""
    stages = dict.fromkeys(("list", "detail", "comment"), 1)
    running = stack.enter_context(services(redis_port, site.url, stages, concurrency=plan.concurrency))
    running.wait_until_idle()
    boards = [str(board + 1) for board in range(plan.boards)]
    return Crawl(lambda: running.submit("list", *boards), running.pids(), lambda: running.books("detail").accepted)


def scrapy_redis(queue: str) -> Start:
    """One process for all three kinds of pages, as many at a time as Threadmill's three together."""

    def start(stack: ExitStack, redis_port: int, site: WatchedSite, plan: Plan) -> Crawl:
        # Asked before it starts: it looks when it starts, and then every 5 s.
        with Redis(port=redis_port) as redis:
            push(redis, "forum", *(f"{site.url}/BBS/list/{board + 1}/1" for board in range(plan.boards)))
        command = [sys.executable, "-m", "bench.peers.scrapy_redis_forum", "--redis-port", str(redis_port)]
        command += ["--concurrency", str(3 * plan.concurrency), "--queue", queue]
        return Crawl(lambda: None, [stack.enter_context(child(command)).pid])

    return start


def _wait_for_lists(site: WatchedSite, plan: Plan, until_s: float) -> bool:
    try:
        for board in range(plan.boards):
            site.visit(f"/BBS/list/{board + 1}/{plan.list_pages}", max(0.0, until_s - time.perf_counter()))
    except TimeoutError:
        return False
    return True


def _known_s(crawl: Crawl, plan: Plan, begin: float) -> float:
    posts = plan.all_list_pages * POSTS_PER_PAGE
    until = time.perf_counter() + _KNOWN_S
    while crawl.posts_known is not None and (known := crawl.posts_known()) < posts:
        if time.perf_counter() > until:
            raise RuntimeError(f"{known} of {posts} posts are known {_KNOWN_S:g} s after the last list page")
        time.sleep(0.01)
    return time.perf_counter() - begin


def seen(visits: Sequence[Visit], plan: Plan, begin: float, known_s: float | None, busiest: float) -> Scan:
    """What the site's visits since `begin` (seconds on its clock) say of the scan."""
    lists = [visit.sent_s - begin for visit in visits if visit.path.startswith("/BBS/list/")]
    lists = [at for at in lists if at <= plan.limit_s]
    complete = len(lists) == plan.all_list_pages
    threads = [visit.path for visit in visits if visit.path.startswith("/BBS/comment/")]
    return Scan(
        list_times_s=[round(at, 3) for at in lists],
        list_pages_per_s=(len(lists) - 1) / ((lists[-1] - lists[0]) if complete else plan.limit_s),
        known_s=known_s,
        posts=sum(visit.path.startswith("/BBS/post/") for visit in visits),
        comment_pages=len(threads),
        straggler_pages=sum(not path.endswith("/1") for path in threads),
        busiest=busiest,
    )


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
