"""A small site that behaves as each test needs, and counts what it was asked for."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

from aiohttp import web


class Site:
    """Serves on loopback from a thread of its own; `hits` counts requests by path."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.url = ""
        self.elsewhere = ""
        """Where /away redirects to."""
        self.robots_elsewhere = False
        self.release = threading.Event()
        """Pages under /hang answer once this is set."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        self._loop.run_until_complete(self._runner.setup())
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._ready.set()
        self._loop.run_forever()

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
        return web.Response(text=path)
