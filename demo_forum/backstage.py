"""What a forum does not show its visitors: its truth, its counters, its knobs. No knob applies here."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict

import orjson
from aiohttp import web

from demo_forum.comments import Comments
from demo_forum.faults import Faults
from demo_forum.forum import Forum
from demo_forum.hits import Hits
from demo_forum.pages import natural
from demo_forum.truth import Digest, Ledger, comment_lines, post_digest, post_lines

Lines = Callable[[Comments, int], Iterator[bytes]]


class Backstage:
    """The doors behind the scenes of `forum`. `catch_up` brings it to the present moment."""

    def __init__(self, forum: Forum, hits: Hits, faults: Faults, catch_up: Callable[[], None]) -> None:
        self._forum = forum
        self._hits = hits
        self._faults = faults
        self._catch_up = catch_up
        self._ledger = Ledger()

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to an application."""
        return [
            web.get("/healthz", self.healthz),
            web.get("/truth", self.truth),
            web.get("/truth/posts", self.truth_posts),
            web.get("/truth/comments", self.truth_comments),
            web.get("/hits", self.hits),
            web.post("/hits/reset", self.reset_hits),
            web.post("/grow", self.grow),
            web.post("/delete", self.delete),
            web.get("/knobs", self.knobs),
            web.post("/knobs", self.turn_knobs),
        ]

    async def healthz(self, _: web.Request) -> web.Response:
        """``{"status": "ok"}`` once pages are served."""
        return _json({"status": "ok"})

    async def truth(self, _: web.Request) -> web.Response:
        """``{"posts": {"count", "digest"}, "comments": {"count", "digest"}}`` at this moment."""
        posts, comments = Digest(), Digest()
        for thread, count in self._present():
            posts.add(1, post_digest(thread, count))
            comments.add(count, self._ledger.sum_of(thread, count))
            await asyncio.sleep(0)  # visitors are served meanwhile
        return _json({"posts": posts.summary(), "comments": comments.summary()})

    async def truth_posts(self, request: web.Request) -> web.StreamResponse:
        """Every post in full, one JSON object a line."""
        return await self._stream(request, post_lines)

    async def truth_comments(self, request: web.Request) -> web.StreamResponse:
        """Every comment in full, one JSON object a line."""
        return await self._stream(request, comment_lines)

    async def hits(self, request: web.Request) -> web.Response:
        """The counters; ``?paths=1`` adds requests per path."""
        return _json(self._hits.report(with_paths=request.query.get("paths") == "1"))

    async def reset_hits(self, _: web.Request) -> web.Response:
        """Sets the counters to 0 and returns them."""
        self._hits.reset()
        return _json(self._hits.report(with_paths=False))

    async def grow(self, request: web.Request) -> web.Response:
        """``?post=100001&comments=45``: adds so many comments to a post; 404 if it does not stand."""
        post, comments = (natural(request.query.get(name, "")) for name in ("post", "comments"))
        self._catch_up()
        return _done(self._forum.grow(post, comments))

    async def delete(self, request: web.Request) -> web.Response:
        """``?post=100001``: deletes a post; 404 if it does not stand."""
        self._catch_up()
        return _done(self._forum.delete(natural(request.query.get("post", ""))))

    async def knobs(self, _: web.Request) -> web.Response:
        """All knobs."""
        return _json(asdict(self._faults.knobs))

    async def turn_knobs(self, request: web.Request) -> web.Response:
        """Changes the knobs named in a JSON object and returns all; 400 with the reason if it cannot."""
        try:
            changes = orjson.loads(await request.read())
            if not isinstance(changes, dict):
                raise ValueError("expected a JSON object of knobs")
            self._faults.knobs = self._faults.knobs.changed(changes)
        except ValueError as error:
            return _json({"error": str(error)}, status=400)
        return _json(asdict(self._faults.knobs))

    def _present(self) -> list[tuple[Comments, int]]:
        self._catch_up()
        return self._forum.posts()

    async def _stream(self, request: web.Request, lines: Lines) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        present = self._present()
        await response.prepare(request)
        for comments, count in present:
            await response.write(b"".join(lines(comments, count)))
            await asyncio.sleep(0)  # visitors are served meanwhile
        await response.write_eof()
        return response


def _done(done: bool) -> web.Response:
    return _json({"done": done}, status=200 if done else 404)


def _json(content: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content), content_type="application/json")
