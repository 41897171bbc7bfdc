"""A TCP proxy between the workers and Redis that does to the bytes what bad networks do, on command.

It runs on a thread and an event loop of its own; what is set on it from the test holds from the next bytes on.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chaos.messages import ANY, CHUNK, Fault, pieces, verbs_of, whole

IN_FLIGHT = 4_096
"""Chunks that latency may keep on their way, each direction of each connection."""


@dataclass(eq=False)
class Connection:
    """One client's connection and its own to Redis."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    mute: list[str] | None = None
    """The verbs whose reply is to be lost, once it comes."""
    tainted: bool = False
    """It lost bytes, so it will never pass any again: TCP leaves no holes."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def reset(self) -> None:
        """RST to both sides; what is on its way is gone."""
        for writer in (self.client, self.server):
            with suppress(OSError, AttributeError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        for task in self.tasks:
            task.cancel()


class Proxy:
    """Listens on loopback and passes on to a Redis; a context manager."""

    def __init__(self, redis_port: int, *, seed: int = 0) -> None:
        self._redis_port = redis_port
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: set[Connection] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._black = False
        self._refusing = False
        self._faults: list[Fault] = []
        self.latency_ms = 0.0
        """Every byte arrives so much later, each way."""
        self.slices = False
        """Bytes arrive in pieces of 1 to 7."""
        self.dropped = 0
        self.resets = 0
        self.accepted = 0
        self.hit: Counter[str] = Counter()
        """Verbs that were in what was lost or late, as `request commit`, `reply lease`, `late admit`."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def blackhole(self) -> None:
        """Accept connections and swallow all bytes; who waits, waits for ever."""
        self._on_loop(self._set_black, True)

    def refuse(self) -> None:
        """Reset all connections, and every new one."""
        self._refusing = True
        self.reset()

    def heal(self) -> None:
        """Pass bytes again. A connection that lost some stays dead until its client gives it up."""
        self._refusing = False
        self._on_loop(self._set_black, False)

    def reset(self) -> int:
        """RST every connection; answers how many there were."""
        cut: int = self._on_loop(self._reset)
        return cut

    def drop_request(self, verb: str = ANY) -> None:
        """Swallow the next message with `verb`, and reset its connection: Redis never saw it."""
        self._on_loop(self._faults.append, Fault("request", verb))

    def drop_reply(self, verb: str = ANY) -> None:
        """Swallow the reply to the next message with `verb`, and reset its connection: Redis acted, nobody knows."""
        self._on_loop(self._faults.append, Fault("reply", verb))

    def hold_back(self, verb: str, seconds: float) -> None:
        """Reset the connection of the next message with `verb`, and bring the message to Redis that much later."""
        self._on_loop(self._faults.append, Fault("late", verb, seconds))

    @property
    def armed(self) -> list[str]:
        """The verbs that wait for their fault."""
        verbs: list[str] = self._on_loop(lambda: [fault.verb for fault in self._faults])
        return verbs

    def calm(self) -> None:
        """No fault any more."""
        self._on_loop(self._faults.clear)
        self.latency_ms, self.slices = 0.0, False
        self.heal()

    def __enter__(self) -> Proxy:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._on_loop(self._server.close)
        self.reset()
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _on_loop(self, act: Callable[..., Any], *args: Any) -> Any:
        async def call() -> Any:
            return act(*args)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=CHUNK, backlog=512)

    async def _finish(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _set_black(self, black: bool) -> None:
        self._black = black

    def _reset(self) -> int:
        cut = len(self._connections)
        for connection in list(self._connections):
            connection.reset()
        self.resets += cut
        return cut

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            Connection(writer, writer).reset()
            return
        try:
            from_redis, to_redis = await asyncio.open_connection("127.0.0.1", self._redis_port, limit=CHUNK)
        except OSError:
            Connection(writer, writer).reset()
            return
        for end in (writer, to_redis):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(writer, to_redis)
        self._connections.add(connection)
        connection.tasks = [
            asyncio.ensure_future(self._pump(connection, reader, to_redis, "request")),
            asyncio.ensure_future(self._pump(connection, from_redis, writer, "reply")),
        ]
        try:
            await asyncio.wait(connection.tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connections.discard(connection)
            for task in connection.tasks:
                task.cancel()
            for end in (writer, to_redis):
                end.close()

    async def _pump(self, of: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """One direction: read as it comes, pass on when it is due."""
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_FLIGHT)
        passing = asyncio.ensure_future(self._pass_on(of, due, writer))
        try:
            while chunk := await reader.read(CHUNK):
                if self._black or of.tainted:
                    of.tainted = True
                    continue
                if way == "request" and self._faults:
                    chunk = await whole(reader, chunk)
                    if not self._befall(of, chunk):
                        return
                if way == "reply" and of.mute is not None:
                    await whole(reader, chunk)
                    self._lost(of, "reply", of.mute)
                    return
                await due.put((loop.time() + self.latency_ms / 1000, chunk))
            if not of.tainted:
                await due.put((loop.time() + self.latency_ms / 1000, b""))
                await passing
        except (OSError, asyncio.CancelledError):
            return
        finally:
            passing.cancel()

    async def _pass_on(self, of: Connection, due: asyncio.Queue[tuple[float, bytes]], writer: Any) -> None:
        loop = asyncio.get_running_loop()
        while True:
            at, chunk = await due.get()
            if (left := at - loop.time()) > 0:
                await asyncio.sleep(left)
            if self._black or of.tainted:  # it was on its way when the hole opened
                of.tainted = True
                continue
            if not chunk:
                return
            with suppress(OSError):
                for piece in pieces(chunk, self._random) if self.slices else [chunk]:
                    writer.write(piece)
                    await (asyncio.sleep(0) if self.slices else writer.drain())

    def _befall(self, of: Connection, message: bytes) -> bool:
        """Let the first fault that is meant for this message happen to it; answers whether it still passes."""
        verbs = verbs_of(message)
        fault = next((fault for fault in self._faults if fault.verb in (ANY, *verbs)), None)
        if fault is None:
            return True
        self._faults.remove(fault)
        if fault.part == "reply":
            of.mute = verbs
            return True
        if fault.part == "late":
            self._late.add(asyncio.ensure_future(self._bring(message, fault.late_s)))
            of.reset()
        else:
            self._lost(of, "request", verbs)
        return False

    async def _bring(self, message: bytes, late_s: float) -> None:
        """A copy that everybody had given up reaches Redis; nobody reads the reply."""
        await asyncio.sleep(late_s)
        from_redis, to_redis = await asyncio.open_connection("127.0.0.1", self._redis_port, limit=CHUNK)
        to_redis.write(message)
        await from_redis.read(CHUNK)
        to_redis.close()
        self._count("late", verbs_of(message))

    def _lost(self, of: Connection, part: str, verbs: list[str]) -> None:
        self._count(part, verbs)
        asyncio.get_running_loop().call_soon(of.reset)

    def _count(self, part: str, verbs: list[str]) -> None:
        self.dropped += 1
        self.hit.update(f"{part} {verb}" for verb in verbs)
