"""A site that notes when each request arrived and when its answer was sent, served from a thread of the benchmark."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

Render = Callable[[bytes], bytes | None]
_HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_NOT_FOUND = b'{"error":"no such page"}'
_STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: seconds on `time.perf_counter()`, when its last byte arrived and when the answer was written."""

    path: str
    arrived_s: float
    sent_s: float


class WatchedSite:
    """Serves `render` (a body for a path, None = 404) over HTTP/1.1, each answer `latency_s` after its request.

    The port is taken at once and connections wait there until `start()`: processes are to be started before the thread
    is, because a fork is safe only without threads.
    """

    def __init__(self, render: Render, latency_s: float = 0.0) -> None:
        self.render = render
        self.latency_s = latency_s
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.visits: list[Visit] = []
        """All requests answered so far, in the order of their answers; only ever appended to."""
        self.transports: set[asyncio.Transport] = set()
        self._first: dict[str, Visit] = {}
        self._news = threading.Condition()
        self._stop: Callable[[], object] | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._ready = threading.Event()

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()
        self._ready.wait()

    def visit(self, path: str, timeout_s: float) -> Visit:
        """The first request for `path`, waited for; TimeoutError if none comes in time."""
        with self._news:
            if not self._news.wait_for(lambda: path in self._first, timeout_s):
                raise TimeoutError(f"nobody asked for {path} within {timeout_s:g} s")
            return self._first[path]

    def note(self, visit: Visit) -> None:
        """A request was answered."""
        self.visits.append(visit)
        with self._news:
            self._first.setdefault(visit.path, visit)
            self._news.notify_all()

    async def _serve(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._stop = partial(loop.call_soon_threadsafe, over.set)
        server = await loop.create_server(lambda: _Connection(self), sock=self._listener)
        self._ready.set()
        await over.wait()
        server.close()
        for transport in list(self.transports):  # from Python 3.12 on, a server waits for its connections
            transport.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._stop()
            self._thread.join(_STOP_TIMEOUT_S)
        self._listener.close()


class _Connection(asyncio.Protocol):
    """One connection: reads requests without bodies, answers each in order."""

    def __init__(self, site: WatchedSite) -> None:
        self._site = site
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._site.transports.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._site.transports.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        arrived_s = time.perf_counter()
        loop = asyncio.get_running_loop()
        due = loop.time() + self._site.latency_s
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            body = self._site.render(path)
            status, body = (b"404 Not Found", _NOT_FOUND) if body is None else (b"200 OK", body)
            answer = _HEAD % (status, len(body)) + body
            if self._site.latency_s:
                loop.call_at(due, self._send, path, answer, arrived_s)
            else:
                self._send(path, answer, arrived_s)

    def _send(self, path: bytes, answer: bytes, arrived_s: float) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)
            self._site.note(Visit(path.decode(), arrived_s, time.perf_counter()))
