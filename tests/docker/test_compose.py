"""The containers, on a real engine: they collect the demo forum, are scaled meanwhile, and stop in good order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from waiting import wait_for

COMPOSE_FILE = Path(__file__).parents[2] / "compose.yaml"
SERVICES = ("redis", "list_scanner", "detail_collector", "comment_collector", "item_writer", "dispatcher", "demo_forum")
STAGES = SERVICES[1:4]
FORUMS = [str(number) for number in range(1, 11)]
GRACE_S = 35
SLOW_MS = 2_000
"""What the forum takes for a page until the fleet has been scaled: its 1,000 posts then last one worker two minutes."""

NO_ENGINE = (
    "no container engine with Compose answers ({}). These tests start the containers of compose.yaml: install and "
    "start Docker Engine with its Compose plugin (https://docs.docker.com/engine/install/) or Debian's docker.io and "
    "docker-compose, or point DOCKER_HOST at an engine; then run pytest tests/docker"
)

TURN_KNOBS = """
import sys, urllib.request
request = urllib.request.Request("http://127.0.0.1:8000/knobs", data=sys.argv[1].encode(), method="POST")
urllib.request.urlopen(request, timeout=10)
"""
PRINT_TRUTH = """
import shutil, sys, urllib.request
shutil.copyfileobj(urllib.request.urlopen(f"http://127.0.0.1:8000/truth/{sys.argv[1]}", timeout=60), sys.stdout.buffer)
"""


def run(*command: str, given: str | None = None, seconds: float = 60) -> str:
    """What a command prints on standard output; fails the test with all it said when it fails."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Containers:
    """The containers of one Compose project."""

    command: tuple[str, ...]

    def compose(self, *arguments: str, seconds: float = 120) -> str:
        return run(*self.command, *arguments, seconds=seconds)

    def ids(self, service: str) -> list[str]:
        """The running containers of a service (of docker-compose 1.29 also those that have ended)."""
        return self.compose("ps", "-q", service).split()

    def inspect(self, ids: list[str]) -> list[dict[str, Any]]:
        return list(json.loads(run("docker", "inspect", *ids)))

    def inside(self, service: str, *command: str) -> str:
        return run("docker", "exec", self.ids(service)[0], *command)

    def stages(self) -> dict[str, dict[str, int]]:
        """The books of each stage, and the items waiting as one more."""
        state = json.loads(self.inside("item_writer", "threadmill", "status", "--json"))["sources"]["bbs"]
        return {**state["stages"], "items": {"requests": state["items_waiting"]}}

    def slow_down_to(self, latency_ms: int) -> None:
        self.inside("demo_forum", "python", "-c", TURN_KNOBS, json.dumps({"latency_ms": latency_ms}))

    def truth(self, table: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.inside("demo_forum", "python", "-c", PRINT_TRUTH, table).splitlines()]


def open_work(books: dict[str, int]) -> int:
    return sum(books.get(name, 0) for name in ("tasks", "requests", "leased", "delayed"))


def engine() -> str:
    """The Compose command of an engine that answers; skips the test where there is none."""
    try:
        probe = ["docker", "version", "--format", "{{.Server.Version}}"]
        found = subprocess.run(probe, capture_output=True, text=True, timeout=1.5, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(NO_ENGINE.format(error))
    if found.returncode != 0:
        pytest.skip(NO_ENGINE.format(found.stderr.strip() or "docker version failed"))
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return "docker compose"
    if shutil.which("docker-compose"):
        return "docker-compose"
    pytest.skip(NO_ENGINE.format(f"Docker {found.stdout.strip()} does, without Compose"))


def redis_image() -> str:
    """The image that compose.yaml names; a stand-in without the folder for its data gets one."""
    image = "redis:7.2"
    owner = "stat -c %U /data 2>/dev/null || echo nobody"
    if run("docker", "run", "--rm", "--entrypoint", "sh", image, "-c", owner, seconds=300).strip() == "redis":
        return image
    run("docker", "build", "-t", "threadmill-test-redis", "-", given=f"FROM {image}\nRUN install -d -o redis /data\n")
    return "threadmill-test-redis"


@pytest.fixture(scope="session")
def docker_compose_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Compose with settings of its own, which it reads as it would an operator's `.env`."""
    command = engine()
    settings = {
        "THREADMILL_BASE_URL": "http://demo-forum:8000",
        "THREADMILL_SOURCES": "bbs",
        "THREADMILL_REDIS_IMAGE": redis_image(),
        # Engines without a resolver on their default network can build this way too.
        "THREADMILL_BUILD_NETWORK": os.environ.get("THREADMILL_BUILD_NETWORK", "host"),
    }
    file = tmp_path_factory.mktemp("compose") / "settings.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("THREADMILL_", "COMPOSE_"))]:
            patch.delenv(name)
        yield f"{command} --env-file {file}"


@pytest.fixture(scope="session")
def docker_compose_file() -> str:
    return str(COMPOSE_FILE)


@pytest.fixture(scope="session")
def docker_compose_project_name() -> str:
    """Always the same: a run finds the images of the last one, and clears away what one that was killed left."""
    return "threadmill-test"


@pytest.fixture(scope="session")
def docker_cleanup() -> list[str]:
    return ["--profile demo --profile tools down -v --remove-orphans"]


@pytest.fixture(scope="session")
def docker_setup(docker_cleanup: list[str]) -> list[str]:
    """Nothing runs before the scenario starts it: whatever goes wrong then, the cleanup is run."""
    return docker_cleanup


@dataclass(frozen=True)
class Run:
    """What was seen of one run of the scenario below."""

    replicas_at_work: int
    open_when_scaled: int
    untouched: bool
    stopped_at_work: dict[str, Any]
    books: dict[str, dict[str, int]]
    at_work: list[dict[str, Any]]
    stop_seconds: float
    ended: list[dict[str, Any]]
    truth: dict[str, list[dict[str, Any]]]
    database: Path


@pytest.fixture(scope="session")
def scenario(
    docker_services: object,
    docker_compose_command: str,
    docker_compose_file: str,
    docker_compose_project_name: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Collect the demo forum; on the way scale the details to three and stop one of them; then stop everything."""
    command = (*docker_compose_command.split(), "-f", docker_compose_file, "-p", docker_compose_project_name)
    containers = Containers(command)
    try:
        return collect(containers, tmp_path_factory.mktemp("stored"))
    except BaseException as error:
        error.add_note(containers.compose("logs", "--tail=40"))
        raise


def collect(containers: Containers, folder: Path) -> Run:
    containers.compose("--profile", "demo", "--profile", "tools", "build", seconds=1200)
    containers.compose("--profile", "demo", "up", "-d")
    containers.slow_down_to(SLOW_MS)
    containers.compose("run", "-T", "--rm", "threadmill", "submit", "list", *FORUMS)
    wait_for(lambda: containers.stages()["detail"]["done"], 120, 0.5, "the first post")

    others = [containers.ids(service) for service in SERVICES if service != "detail_collector"]
    containers.compose("--profile", "demo", "up", "-d", "--scale", "detail_collector=3")
    wait_for(lambda: containers.stages()["detail"]["workers"] == 3, 60, 0.5, "three replicas at work")
    scaled = containers.stages()["detail"]
    untouched = others == [containers.ids(service) for service in SERVICES if service != "detail_collector"]
    leaver = containers.ids("detail_collector")[0]
    run("docker", "stop", "--time", str(GRACE_S), leaver)
    containers.slow_down_to(0)

    def all_stored() -> dict[str, dict[str, int]] | None:
        # Stages are read in the order of the pipeline: what has left one is seen in the next.
        books = containers.stages()
        return None if any(open_work(stage) for stage in books.values()) else books

    books = wait_for(all_stored, 300, 0.5, "everything to be stored")
    ids = [each for service in SERVICES for each in containers.ids(service) if each != leaver]

    def all_healthy() -> list[dict[str, Any]] | None:
        seen = containers.inspect(ids)
        return seen if all(each["State"]["Health"]["Status"] == "healthy" for each in seen) else None

    at_work = wait_for(all_healthy, 120, 0.5, "all health checks")
    truth = {table: containers.truth(table) for table in ("posts", "comments")}
    writer = containers.ids("item_writer")[0]
    before = time.monotonic()
    containers.compose("--profile", "demo", "stop")
    seconds = time.monotonic() - before
    run("docker", "cp", f"{writer}:/data/.", str(folder))
    [left] = containers.inspect([leaver])
    return Run(
        replicas_at_work=scaled["workers"],
        open_when_scaled=open_work(scaled),
        untouched=untouched,
        stopped_at_work=left["State"],
        books=books,
        at_work=at_work,
        stop_seconds=seconds,
        ended=containers.inspect(ids),
        truth=truth,
        database=folder / "threadmill.db",
    )


@pytest.mark.parametrize("table", ["posts", "comments"])
def test_every_row_of_the_demo_forum_is_stored_once(scenario: Run, table: str) -> None:
    # Not before an engine was found: without one this file shall cost nothing.
    from demo_forum.check import rows_of, tally  # noqa: PLC0415
    from demo_forum.truth import COMMENT_FIELDS, POST_FIELDS  # noqa: PLC0415

    names = POST_FIELDS if table == "posts" else COMMENT_FIELDS
    outcome = tally(rows_of(scenario.database, table), scenario.truth[table], names)
    assert outcome.ok, outcome
    assert outcome.stored >= 1000


def test_the_books_balance_and_nothing_was_parked(scenario: Run) -> None:
    for stage in ("list", "detail", "comment"):
        books = scenario.books[stage]
        assert books["accepted"] == books["done"] > 0, books
        assert books["dead"] == 0, books


def test_a_stage_is_scaled_while_it_works_and_the_others_run_on(scenario: Run) -> None:
    assert scenario.replicas_at_work == 3
    assert scenario.open_when_scaled > 0
    assert scenario.untouched


def test_a_replica_that_is_stopped_at_work_ends_in_good_order(scenario: Run) -> None:
    assert scenario.stopped_at_work["ExitCode"] == 0, scenario.stopped_at_work


def test_all_containers_report_themselves_healthy(scenario: Run) -> None:
    assert len(scenario.at_work) == len(SERVICES) + 1
    assert {each["State"]["Health"]["Status"] for each in scenario.at_work} == {"healthy"}


def test_no_container_runs_as_root_or_can_become_it(scenario: Run) -> None:
    for each in scenario.at_work:
        assert each["Config"]["User"] not in ("", "root", "0"), each["Name"]
        assert each["HostConfig"]["CapDrop"] == ["ALL"], each["Name"]
        assert each["HostConfig"]["ReadonlyRootfs"], each["Name"]
        assert any(option.startswith("no-new-privileges") for option in each["HostConfig"]["SecurityOpt"])


def test_compose_stop_ends_all_in_time_with_status_0(scenario: Run) -> None:
    ended = {each["Name"]: each["State"]["ExitCode"] for each in scenario.ended}
    assert set(ended.values()) == {0}, ended
    assert scenario.stop_seconds < GRACE_S
    assert all(each["RestartCount"] == 0 for each in scenario.ended)
