"""Small sites that behave as each test needs, and keep what they were asked for."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET
from typing import Self

from aiohttp import web


class Served:
    """Serves on loopback from a thread of its own, between `with` and its end."""

    def __init__(self) -> None:
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._begin())
        self._ready.set()
        self._loop.run_forever()

    async def _begin(self) -> None:
        raise NotImplementedError

    async def _end(self) -> None:
        raise NotImplementedError


class Site(Served):
    """`hits` counts requests by path; what a path answers is said by its first part."""

    def __init__(self) -> None:
        super().__init__()
        self.hits: Counter[str] = Counter()
        self.elsewhere = ""
        """Where /away redirects to."""
        self.robots_elsewhere = False
        self.release = threading.Event()
        """Pages under /hang answer once this is set."""
        self.times: list[float] = []
        """When each page under /slow was asked for (s)."""
        self.under_way = self.most_under_way = 0
        """Pages under /slow: now, and at most at a time."""

    def __exit__(self, *_: object) -> None:
        self.release.set()
        super().__exit__()

    async def _begin(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _end(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        path = "/" + request.match_info["path"]
        self.hits[path] += 1
        kind = path.split("/")[1]
        if kind.isdigit():
            return web.Response(status=int(kind), text="as asked")
        if kind == "robots.txt":
            if self.robots_elsewhere:
                raise web.HTTPFound(f"{self.elsewhere}/robots.txt")
            return web.Response(status=404)
        if kind == "moved":
            raise web.HTTPFound(f"{self.url}/page/moved")
        if kind == "away":
            raise web.HTTPFound(f"{self.elsewhere}/stolen")
        if kind == "busy":
            # The first answer asks to wait, the second serves.
            if self.hits[path] == 1:
                return web.Response(status=429, headers={"Retry-After": "1"}, text="slow down")
            return web.Response(text=path)
        if kind == "curt":
            # Asks to wait, and does not say how long.
            return web.Response(status=429) if self.hits[path] == 1 else web.Response(text=path)
        if kind == "flaky":
            if self.hits[path] == 1:
                return web.Response(status=500, text="once")
            return web.Response(text=path)
        if kind == "hang":
            while not self.release.is_set():
                await asyncio.sleep(0.02)
        if kind == "slow":
            await self._slowly()
        return web.Response(text=path)

    async def _slowly(self) -> None:
        self.times.append(time.monotonic())
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.05)
        self.under_way -= 1


@dataclass(frozen=True)
class Canned:
    """What a `RawSite` answers, byte for byte, and what it does then: keep, close, reset, hang, leave, or go on."""

    reply: bytes
    then: str = "keep"


def page(body: bytes, *headers: str, status: str = "200 OK") -> Canned:
    """A well-formed answer."""
    lines = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return Canned(lines.encode("latin-1") + b"\r\n\r\n" + body)


NOT_THERE = page(b"", status="404 Not Found")


class RawSite(Served):
    """Answers each path with the bytes it was given; also a proxy, for what names no path of its own.

    A path without an answer shows the request: its head as JSON text, and its body.
    """

    def __init__(self, answers: Mapping[str, Canned] | None = None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.answers = {"/robots.txt": NOT_THERE, **(answers or {})}
        self.heads: list[bytes] = []
        """What was asked, each as it came: request line and headers."""
        self.connections = 0
        self._tls = tls

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    async def _end(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=2) if tasks else None

    def said(self, path: str) -> str:
        """The request for a path, as it came."""
        [head] = [head for head in self.heads if head.split(b" ")[1] == path.encode()]
        return head.decode("latin-1")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target = head.split(b" ")[:2]
        if method == b"CONNECT":
            await self._tunnel(target, reader, writer)
            return False
        lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-len")]
        body = await reader.readexactly(lengths[0]) if lengths else b""
        shown = json.dumps({"head": head.decode("latin-1"), "body": body.decode("latin-1")}).encode()
        answer = self.answers.get(target.decode().split("?")[0], page(shown, "Content-Type: application/json"))
        writer.write(answer.reply)
        await writer.drain()
        return await self._then(answer.then, reader, writer)

    async def _then(self, then: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if then == "leave":  # closes a while after the answer, and does not say so
            await asyncio.sleep(0.1)
        if then == "hang":
            await reader.read()
        if then == "reset":
            await asyncio.sleep(0.05)
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        while then == "go on":
            writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
            await writer.drain()
        return then == "keep"

    async def _tunnel(self, target: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.decode().partition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pour(reader, back), _pour(there, writer))


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(65536):
        sink.write(piece)
        await sink.drain()
    sink.close()
