"""The forum as a web application: the three interfaces, and behind them the operator's doors."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from demo_forum.backstage import Backstage
from demo_forum.config import ForumConfig
from demo_forum.faults import Faults
from demo_forum.forum import Forum
from demo_forum.harms import HARMS, JSON, Victim
from demo_forum.hits import Hits
from demo_forum.knobs import Knobs
from demo_forum.pages import Page, Pages

_REFUSALS = {
    429: b'{"error":"too many requests"}',
    500: b'{"error":"something went wrong"}',
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_app(
    config: ForumConfig, knobs: Knobs | None = None, clock: Callable[[], float] = time.monotonic
) -> web.Application:
    """The forum of `config` as an application, misbehaving by `knobs` (by default: not at all).

    `clock` tells seconds; second 0 of the forum is the moment of this call. Pages are rendered at startup.
    """
    forum = Forum(config)
    born_s = clock()
    pages = Pages(forum)
    hits = Hits()
    faults = Faults(knobs or Knobs(), config.seed, clock)

    def catch_up() -> None:
        forum.advance(clock() - born_s)

    async def warm(_: web.Application) -> None:
        pages.warm()

    def interface(name: str, render: Callable[[web.Request], Page]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if faults.knobs.down:
                return _hang_up(request)
            hits.record(name, request.path)
            verdict = faults.judge(request.path)
            if verdict.delay_s:
                await asyncio.sleep(verdict.delay_s)
            if verdict.status != 200:
                hits.refuse()
                return _refusal(verdict.status, faults.knobs.retry_after_s)
            catch_up()
            page = render(request)
            if verdict.harm:
                hits.harm(verdict.harm)
                return await HARMS[verdict.harm](Victim(request, page, faults.knobs, verdict.dice))
            hits.served(name, request.path, page.rows)
            return web.Response(status=page.status, body=page.body, headers=JSON)

        return handle

    def render_list(request: web.Request) -> Page:
        return pages.list_page(request.match_info["forum_id"], request.match_info["page"])

    def render_post(request: web.Request) -> Page:
        return pages.post_page(request.match_info["post_id"])

    def render_comments(request: web.Request) -> Page:
        return pages.comment_page(request.match_info["post_id"], request.match_info["page"])

    app = web.Application()
    app.on_startup.append(warm)
    app.router.add_get("/BBS/list/{forum_id}/{page}", interface("list", render_list))
    app.router.add_get("/BBS/post/{post_id}", interface("post", render_post))
    app.router.add_get("/BBS/comment/{post_id}/{page}", interface("comment", render_comments))
    app.router.add_routes(Backstage(forum, hits, faults, catch_up).routes())
    return app


def _refusal(status: int, retry_after_s: int) -> web.Response:
    headers = JSON | {"Retry-After": str(retry_after_s)} if status == 429 else JSON
    return web.Response(status=status, body=_REFUSALS[status], headers=headers)


def _hang_up(request: web.Request) -> web.Response:
    """Closes the connection; the response that aiohttp insists on finds nobody to go to."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()
