"""The demo forum in a thread of the test, which notes when each request came and when its answer left."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from aiohttp import web

from crawl.site import Served
from demo_forum.config import ForumConfig
from demo_forum.knobs import Knobs
from demo_forum.server import Handler, create_app


@dataclass(frozen=True)
class Visit:
    """One request: seconds on the monotonic clock."""

    came_s: float
    left_s: float


class WatchedForum(Served):
    """`visits` has what was asked for, by path, in the order of arrival."""

    def __init__(self, config: ForumConfig, *, latency_ms: float) -> None:
        super().__init__()
        self.visits: defaultdict[str, list[Visit]] = defaultdict(list)
        self._config = config
        self._knobs = Knobs(latency_ms=latency_ms)

    async def _begin(self) -> None:
        app = create_app(self._config, self._knobs)
        app.middlewares.append(self._note)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _end(self) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        came_s = time.monotonic()
        response = await handler(request)
        self.visits[request.path].append(Visit(came_s, time.monotonic()))
        return response
