"""A request is lost before Redis, its reply after Redis acted, or it arrives when all had given it up: verb by verb."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.behind_proxy import behind_proxy, drained
from chaos.messages import SCRIPTS
from chaos.proxy import Proxy
from end_to_end.pipeline import Pipeline
from threadmill.model.stages import DETAIL, LIST
from threadmill.model.task import Task
from threadmill.store.calls import Call, run
from threadmill.store.connection import STORE_FAILURES, connect
from threadmill.store.letters import dead_letters
from threadmill.store.work import Child
from waiting import wait_for

TINY = ["--forums", "2", "--pages-per-forum", "2", "--posts-per-page", "10", "--mean-comments", "4"]
"""Forty posts, in two forums."""
PARTS = ["request", "reply", "late"]
LATE_S = 3.0
"""A late copy comes after its call was repeated and after what it was about is over."""
VERBS = {
    *("submit", "enqueue", "XREADGROUP", "admit", "refuse", "lease", "commit", "delay", "park", "release"),
    *("renew", "report", "reclaim", "XAUTOCLAIM", "leave", "settle", "claim_items", "leave_items"),
}
LEASE_MS = 30_000
SOON_S = 25
"""Less than a lease: what a live worker holds and does not work on would take longer."""


@pytest.mark.scenario(14)
@pytest.mark.chaos
@pytest.mark.parametrize("part", PARTS)
def test_every_verb_is_lost_once(tmp_path: Path, part: str) -> None:
    # Given a pipeline that did some work
    with behind_proxy(tmp_path, TINY, lease_ttl_ms=LEASE_MS, grace_ms=200, retry_base_ms=100) as (rig, proxy):
        rig.start()
        for script in SCRIPTS:
            rig.deployment.client.script_load(script.text)  # an unknown one would be refused, not lost
        job = rig.submit("list", ["1"]).job
        rig.wait_until_done(job)
        # When each verb is lost once, while it is at work
        arm(proxy, part, "XAUTOCLAIM")
        arm(proxy, part, "claim_items")
        asked_for(rig, proxy, part, job)
        worked_on(rig, proxy, part, job)
        failed(rig, proxy, part, job)
        waited_for(rig, proxy, part, job)
        expected = {f"{part} {verb}" for verb in VERBS}
        wait_for(lambda: expected <= proxy.hit.keys(), 20, what=f"{expected - proxy.hit.keys()} to be lost")
        # Then what was to be done is done, once, before a lost lease would expire
        drained(rig, job, SOON_S)


@pytest.mark.scenario(14)
@pytest.mark.chaos
def test_the_other_partitions_are_told_to_leave_the_site_alone_once(tmp_path: Path) -> None:
    # Given a site of two partitions, that will not be asked more than ten times a second
    with behind_proxy(tmp_path, TINY, lease_ttl_ms=LEASE_MS, partitions=2) as (rig, proxy):
        rig.start()
        job = rig.submit("list", ["1", "2"]).job
        rig.wait_until_done(job)
        rig.turn(rate_limit_per_s=10)
        # When the message about it is lost on its way, or on its way back, or comes late
        for part in PARTS:
            with lost(rig, proxy, part, "hold"):
                again(rig, job, 40)
        # Then nobody waits for longer than the site asked, and all is done once
        drained(rig, job, SOON_S)


@pytest.mark.scenario(14)
@pytest.mark.chaos
def test_a_read_that_comes_late_takes_no_task_away(tmp_path: Path) -> None:
    # Given an idle collector that waits for tasks, and a copy of its reading that comes when all had given it up
    with behind_proxy(tmp_path, TINY, lease_ttl_ms=LEASE_MS) as (rig, proxy):
        rig.start("detail", writer=False)
        readers = "blocked_clients"
        wait_for(lambda: rig.deployment.client.info("clients")[readers] == 1, what="the collector to wait")
        with lost(rig, proxy, "late", "BLOCK"):
            pass
        wait_for(lambda: rig.deployment.client.info("clients")[readers] == 2, every=0.001, what="the late copy")
        # When tasks come one by one, so that one of them is told to the copy
        for post in ("100001", "100002"):
            rig.submit("detail", [post])
        wait_for(lambda: proxy.hit["late BLOCK"], what="the copy to be answered")
        # Then it is done all the same, before another worker might take it over
        wait_for(lambda: rig.books("detail")["done"] == 2, SOON_S, what="both tasks to be done")


def asked_for(rig: Pipeline, proxy: Proxy, part: str, job: str) -> None:
    """Submissions by an operator who repeats what failed, and a request that no page asked for: it makes no sense."""
    token = secrets.token_hex(8)
    lists, details = (rig.deployment.store(rig.lane, stage) for stage in (LIST, DETAIL))
    insisted(rig, proxy, part, lists.submit([Task("list", "bbs", "2")], token=token, job=job))
    with lost(rig, proxy, part, "park"):
        insisted(rig, proxy, part, details.enqueue([Child(b"no request", "")], token=token))
    with lost(rig, proxy, part, "refuse"):
        rig.deployment.client.xadd(rig.lane.stage("detail").tasks, {"task": b"{no json"})
    wait_for(lambda: rig.books("detail")["dead"] == 2, what="the two to be parked")
    letters = [letter.id for letter in dead_letters(rig.deployment.client, rig.lane, "detail")]
    assert run(rig.deployment.client, details.drop(letters)) == 2


def worked_on(rig: Pipeline, proxy: Proxy, part: str, job: str) -> None:
    """More than the workers can take at once, so that a late copy finds something to take."""
    rig.turn(latency_ms=300)
    again(rig, job, 160)
    for verb in ("lease", "XREADGROUP", "admit", "commit", "settle"):
        with lost(rig, proxy, part, verb):
            pass


def failed(rig: Pipeline, proxy: Proxy, part: str, job: str) -> None:
    with lost(rig, proxy, part, "delay"):
        rig.turn(error_rate=0.5)
        again(rig, job, 10)
    rig.turn(error_rate=0, latency_ms=0)


def waited_for(rig: Pipeline, proxy: Proxy, part: str, job: str) -> None:
    """Pages that take longer than workers are silent, and than they are left when told to stop."""
    wait_for(lambda: rig.job(job).finished, SOON_S, what="the site to be free")
    rig.turn(latency_ms=20_000)
    again(rig, job, 10)
    with lost(rig, proxy, part, "renew", "report", "reclaim"):
        pass
    with lost(rig, proxy, part, "release", "leave"):
        rig.scale("detail", 0)
    with lost(rig, proxy, part, "leave_items"):
        rig.fleet.scale("item_writer", 0)
    rig.turn(latency_ms=0)
    rig.start("detail")


def again(rig: Pipeline, job: str, tasks: int) -> None:
    """Have so many posts collected that had been collected before."""
    posts = [path.rsplit("/", 1)[-1] for path in rig.hits() if path.startswith("/BBS/post/")]
    rig.submit("detail", (posts * tasks)[:tasks], force=True, job=job)


def insisted(rig: Pipeline, proxy: Proxy, part: str, call: Call[Any]) -> None:
    """Call through the proxy, and once more when it fails."""
    with lost(rig, proxy, part, call.script.name):
        client = connect(proxy.url)
        with pytest.raises(STORE_FAILURES):
            run(client, call)
        run(client, call)
        client.close()


@contextmanager
def lost(rig: Pipeline, proxy: Proxy, part: str, *verbs: str) -> Iterator[None]:
    """Each of these verbs is lost within; leaves when they are on their way."""
    for verb in verbs:
        arm(proxy, part, verb)
    yield
    wait_for(lambda: rig.fleet.tend() or not set(verbs) & set(proxy.armed), 20, what=f"{verbs} to be said")


def arm(proxy: Proxy, part: str, verb: str) -> None:
    if part == "late":
        proxy.hold_back(verb, LATE_S)
    else:
        (proxy.drop_request if part == "request" else proxy.drop_reply)(verb)
