"""A visitor of a demo forum whose clock stands still."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from demo_forum import ForumConfig, Knobs, create_app

SMALL = ForumConfig(seed=7, forums=3, pages_per_forum=2, posts_per_page=5, mean_comments=12, comments_per_page=7)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Visitor:
    """Asks a running forum."""

    def __init__(self, client: TestClient[Any, Any], clock: Clock) -> None:
        self.client = client
        self.clock = clock

    @property
    def url(self) -> str:
        return str(self.client.make_url("/"))

    async def status(self, path: str) -> int:
        async with self.client.get(path) as answer:
            await answer.read()
            return answer.status

    async def json(self, path: str) -> Any:
        async with self.client.get(path) as answer:
            assert answer.status == 200, path
            return await answer.json()

    async def lines(self, path: str) -> list[dict[str, Any]]:
        async with self.client.get(path) as answer:
            return [json.loads(line) for line in (await answer.text()).splitlines()]

    async def turn(self, **knobs: Any) -> None:
        async with self.client.post("/knobs", json=knobs) as answer:
            assert answer.status == 200

    async def pages(self, path: str) -> list[Any]:
        """All pages below `path`, from 1 until the 404."""
        pages: list[Any] = []
        while await self.status(f"{path}/{len(pages) + 1}") == 200:
            pages.append(await self.json(f"{path}/{len(pages) + 1}"))
        return pages

    async def collect(self, forums: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Every post and comment that the three interfaces lead to, as rows."""
        posts, comments = [], []
        for forum in range(1, forums + 1):
            for page in await self.pages(f"/BBS/list/{forum}"):
                for entry in page["posts"]:
                    posts.append(await self.json(f"/BBS/post/{entry['post_id']}"))
                    for comment_page in await self.pages(f"/BBS/comment/{entry['post_id']}"):
                        comments += [row | {"post_id": entry["post_id"]} for row in comment_page["comments"]]
        return posts, comments


def visit(story: Callable[[Visitor], Awaitable[None]], config: ForumConfig = SMALL, knobs: Knobs | None = None) -> None:
    """Runs `story` against a forum on loopback whose clock stands still."""

    async def run() -> None:
        clock = Clock()
        server = TestServer(create_app(config, knobs, clock))
        async with TestClient(server) as client:
            await story(Visitor(client, clock))

    asyncio.run(run())
