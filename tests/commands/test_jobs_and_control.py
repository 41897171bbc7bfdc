"""The commands on jobs and on what runs, on a deployment in which no service runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commands.operator import Operator
from threadmill.model.config import Config
from threadmill.model.stages import DETAIL
from threadmill.ops.deployment import Deployment
from threadmill.ops.embedded import EmbeddedRedis
from threadmill.ops.submission import Submission, new_job_id, submit
from threadmill.store.connection import Client
from threadmill.store.jobs import find_job

SOURCE = "sources/bbs.toml"


@pytest.fixture
def deployment(client: Client, redis_server: EmbeddedRedis) -> Iterator[Deployment]:
    """An empty Redis, and the demo forum's source."""
    deployment = Deployment.connected(Config(redis_url=redis_server.url, sources=(SOURCE,)))  # type: ignore[arg-type]
    yield deployment
    deployment.client.close()


def ask(deployment: Deployment, *posts: str, job: str = "") -> Submission:
    return submit(deployment, deployment.source(None), DETAIL, posts, job=job or new_job_id(), force=True)


def test_a_job_is_waited_for_in_vain(deployment: Deployment, threadmill: Operator) -> None:
    # Given a job nobody works on
    job = ask(deployment, "1", "2", "3").job
    # When it is waited for; then the command says how much is open, with a status of its own
    said = threadmill("job", job, "--wait", "--timeout", "0.1")
    assert (said.status, "3 open" in said.err) == (4, True)
    assert [each["job"] for each in threadmill("jobs", "--open", "--json").json] == [job]
    assert (threadmill("job", job).status, job in threadmill("jobs").out) == (0, True)


def test_jobs_are_listed_newest_first_and_no_more_than_asked_for(deployment: Deployment, threadmill: Operator) -> None:
    jobs = [ask(deployment, str(number), job=f"job-{number}").job for number in range(5)]
    begun = deployment.lanes()[0].jobs
    deployment.client.zadd(begun, {job: 1000 + number for number, job in enumerate(jobs)})
    assert [each["job"] for each in threadmill("jobs", "--json", "--limit", "3").json] == ["job-4", "job-3", "job-2"]


def test_a_submission_of_many_batches_is_announced_until_it_is_over(deployment: Deployment) -> None:
    # Given a submission of three batches; when the job is looked at after each
    client, lanes, states = deployment.client, deployment.lanes(), []

    def look(_: int) -> None:
        found = find_job(client, lanes, "many")
        states.append(found and found.state)

    keys = [str(number) for number in range(1200)]
    submit(deployment, deployment.source(None), DETAIL, keys, job="many", progress=look)
    # Then more was announced all the time, and not any more when it was over
    assert states == ["submitting"] * 3
    found = find_job(client, lanes, "many")
    assert found is not None
    assert (found.state, found.books.accepted) == ("open", {"detail": 1200})


def test_what_operators_say_is_kept_shown_and_taken_back(deployment: Deployment, threadmill: Operator) -> None:
    control = deployment.lanes()[0].stage("detail").control

    def field(name: str) -> bytes | None:
        return deployment.client.hget(control, name)

    assert threadmill("rate", "bbs", "2.5", "--json").json == {"source": "bbs", "rate": 2.5}
    assert (field("rate"), "2.5 requests/s" in threadmill("rate", "bbs").out) == (b"2.5", True)
    assert threadmill("rate", "bbs", "unlimited", "--json").json["rate"] == 0
    assert threadmill("rate", "bbs", "none", "--json").json["rate"] is None
    assert threadmill("concurrency", "detail", "32", "--json").json == {"stage": "detail", "concurrency": 32}
    assert (field("concurrency"), "32 downloads" in threadmill("concurrency", "detail").out) == (b"32", True)
    assert threadmill("concurrency", "detail", "default", "--json").json["concurrency"] is None
    assert threadmill("drain", "detail", "--source", "bbs", "--json").json["state"] == "draining"
    assert threadmill("pause", "detail").status == 0
    assert "detail (paused, draining)" in threadmill("status").out
    assert threadmill("resume", "detail").status == 0
    assert (field("paused"), field("draining"), field("rate"), field("concurrency")) == (None,) * 4


def test_a_job_is_put_behind_others(deployment: Deployment, threadmill: Operator) -> None:
    # (what becomes of the queues: tests/store/test_jobs.py)
    job = ask(deployment, "7").job
    assert threadmill("priority", job, "-5", "--json").json == {"job": job, "priority": -5, "placed": 0}
    assert threadmill("job", job, "--json").json["priority"] == -5


WRONG = {
    ("pause", "nowhere"): "unknown stage 'nowhere'",
    ("pause", "detail", "--source", "elsewhere"): "source 'elsewhere' is not configured",
    ("rate", "elsewhere", "1"): "source 'elsewhere' is not configured",
    ("rate", "bbs", "0"): "to stop, use pause",
    ("rate", "bbs", "fast"): "'fast' is no rate",
    ("concurrency", "detail", "0"): "'0' is no concurrency",
    ("priority", "4711", "1"): "there is no job 4711",
    ("priority", "4711", "1000000"): "a priority lies between",
    ("job", "4711"): "there is no job 4711",
    ("job", "4711", "--wait"): "there is no job 4711",
    ("job", "4711", "--stored"): "add --wait",
    ("submit", "detail", "1", "--job", "events"): "a job id is",
    ("submit", "detail", "1", "--priority", "1000000"): "a priority lies between",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_makes_no_sense_is_told_in_plain_words(threadmill: Operator, arguments: tuple[str, ...]) -> None:
    said = threadmill(*arguments)
    assert (said.status, WRONG[arguments] in said.err) == (2, True), said.err


def test_books_that_are_none_are_told(client: Client, threadmill: Operator) -> None:
    # Given a hash of somebody else's under a job's name
    client.zadd("{bbs.0}:jobs", {"4711": 1})
    client.hset("{bbs.0}:jobs:4711", mapping={"open": "perhaps", "hold": "?", "detail:accepted": 1})
    # When a command meets it; then it says so, and what to do
    for arguments in (("jobs",), ("job", "4711"), ("job", "4711", "--wait")):
        said = threadmill(*arguments)
        assert (said.status, "jobs:4711 cannot be read" in said.err) == (3, True), said.err


def test_in_an_empty_redis_there_is_nothing(client: Client, threadmill: Operator) -> None:
    assert threadmill("jobs").out == "nothing was submitted yet\n"
    assert threadmill("jobs", "--open").out == "every job is finished\n"
    assert threadmill("jobs", "--json").json == []
    assert threadmill("events").out == "nothing was finished yet\n"
