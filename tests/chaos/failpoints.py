"""Failpoints: places between two I/O steps of a service where a test ends or stops the process. Armed from outside.

`hooks/sitecustomize.py` calls `arm` in processes whose environment has CHAOS_FAILPOINTS, the folder of a `Failpoints`.
A point is `<service>:<step>`: `before:` or `after:` an I/O step, `amid:` a verb and the rest of its trip to Redis.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

ENVIRONMENT = "CHAOS_FAILPOINTS"
HOOKS = Path(__file__).with_name("hooks")


class Failpoints:
    """A folder with a file for each point: `armed/` waits, `fired/` struck, `passed/` is any that a process passed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()
        for name in ("armed", "fired", "passed"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What services need in their environment to have these points."""
        path = (str(HOOKS.parents[1]), str(HOOKS), os.environ.get("PYTHONPATH"))
        return {"PYTHONPATH": os.pathsep.join(filter(None, path)), ENVIRONMENT: str(self._folder)}

    def arm(self, points: Iterable[str], action: signal.Signals = signal.SIGKILL) -> None:
        """Let each of the points do this, once, to the process that passes it first."""
        for point in points:
            (self._folder / "fired" / point).unlink(missing_ok=True)
            new = self._folder / point  # written aside: half a file must not be found
            new.write_text(str(int(action)))
            new.rename(self._folder / "armed" / point)

    def waiting(self) -> set[str]:
        """The points that are armed and were not reached yet."""
        return self._names("armed")

    def passed(self) -> set[str]:
        """Every point that any process passed, armed or not."""
        return self._names("passed")

    def fired(self, point: str) -> bool:
        """Whether a process was struck at this point since it was armed last."""
        return (self._folder / "fired" / point).exists()

    def at(self, point: str) -> None:
        """The process is at this point: if it is armed, that is the process's end, or stop."""
        self.strike(self.claim(point))

    def claim(self, point: str) -> int:
        """The signal to strike with, if the point is armed: a rename succeeds for one process only. 0 otherwise."""
        if point not in self._known:
            self._known.add(point)
            (self._folder / "passed" / point).touch()
        fired = self._folder / "fired" / point
        try:
            (self._folder / "armed" / point).rename(fired)
        except FileNotFoundError:
            return 0
        return int(fired.read_text())

    def strike(self, action: int) -> None:
        if action:
            os.kill(os.getpid(), action)

    def _names(self, state: str) -> set[str]:
        return {file.name for file in (self._folder / state).iterdir()}


def arm() -> None:
    """Wrap the I/O steps of this process, if it is a service (`python -m <service>`)."""
    if "-m" not in sys.orig_argv:
        return
    service = sys.orig_argv[sys.orig_argv.index("-m") + 1]
    steps = Steps(Failpoints(Path(os.environ[ENVIRONMENT])), service)
    steps.wrap_redis()
    if service == "item_writer":
        steps.wrap_database()
    else:
        steps.wrap_pages()


class Steps:
    """The I/O steps of a service, each wrapped so that it passes its points."""

    def __init__(self, points: Failpoints, service: str) -> None:
        self._points = points
        self._service = service

    def at(self, step: str) -> None:
        self._points.at(f"{self._service}:{step}")

    def wrap_redis(self) -> None:
        """Trips of verbs, and the plain commands of the client."""
        import redis  # noqa: PLC0415 - what a service does not use is not loaded

        from threadmill.store import calls  # noqa: PLC0415

        send, execute = calls._send, redis.Redis.execute_command

        def send_in_steps(client: Any, trip: Sequence[Any]) -> list[Any]:
            names = [_name(call) for call in trip]
            for name in dict.fromkeys(names):
                self.at(f"before:{name}")
            for number, name in enumerate(names[:-1], 1):
                if action := self._points.claim(f"{self._service}:amid:{name}"):
                    send(client, trip[:number])
                    self._points.strike(action)
            replies = send(client, trip)
            for name in dict.fromkeys(names):
                self.at(f"after:{name}")
            return replies

        @wraps(execute)
        def execute_in_steps(client: Any, *args: Any, **options: Any) -> Any:
            return self._step(str(args[0]), lambda: execute(client, *args, **options))

        calls._send = send_in_steps
        redis.Redis.execute_command = execute_in_steps

    def wrap_pages(self) -> None:
        """A page's download, and its callback."""
        from threadmill.crawl.downloader import Downloader  # noqa: PLC0415
        from threadmill.crawl.spider import StageSpider  # noqa: PLC0415

        fetch, parse = Downloader._in_slot, StageSpider.parse

        @wraps(fetch)
        async def download(downloader: Any, request: Any) -> Any:
            self.at("before:download")
            return await fetch(downloader, request)

        @wraps(parse)
        def callback(spider: Any, response: Any, **kwargs: Any) -> Iterator[Any]:
            self.at("after:download")
            for number, output in enumerate(parse(spider, response, **kwargs)):
                yield output
                if number == 0:
                    self.at("amid:callback")
            self.at("after:callback")

        Downloader._in_slot = download
        StageSpider.parse = callback

    def wrap_database(self) -> None:
        """The item writer's transactions: `open` makes the tables, `write` stores a batch."""
        from sqlalchemy import Engine, event  # noqa: PLC0415
        from sqlalchemy.engine.default import DefaultDialect  # noqa: PLC0415

        from item_writer.sql_store import SqlStore  # noqa: PLC0415

        commit, doing = DefaultDialect.do_commit, ["open"]

        def named(act: str) -> None:
            method = getattr(SqlStore, act)

            @wraps(method)
            def do(store: Any, *args: Any) -> Any:
                doing[0] = act
                return method(store, *args)

            setattr(SqlStore, act, do)

        named("open")
        named("write")
        event.listen(Engine, "begin", lambda _: self.at(f"before:{doing[0]}.begin"))
        # Our store's own BEGIN is said by a later listener of that event, so do_begin comes after it.
        DefaultDialect.do_begin = lambda *args: self.at(f"after:{doing[0]}.begin")
        DefaultDialect.do_commit = lambda *args: self._step(f"{doing[0]}.commit", lambda: commit(*args))

    def _step(self, name: str, act: Callable[[], Any]) -> Any:
        self.at(f"before:{name}")
        answer = act()
        self.at(f"after:{name}")
        return answer


def _name(call: Any) -> str:
    return str(call.script.name if hasattr(call, "script") else call.command[0])
