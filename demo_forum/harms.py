"""Harms: the ways in which a site can answer wrongly, by name."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from aiohttp import web

from demo_forum.dice import Dice
from demo_forum.pages import Page

if TYPE_CHECKING:
    from demo_forum.knobs import Knobs  # which knows the names of all harms

JSON = {"Content-Type": "application/json; charset=utf-8"}
_HTML = b"<!doctype html><html><body><h1>Please wait</h1>Checking your browser.</body></html>"
_SHAPES = (
    b"null", b"[]", b"{}", b'"maintenance"', b'{"error":"overloaded"}', b'{"pages":1e999}', b"[" * 5000 + b"]" * 5000,
    b'{"post_id":{},"forum_id":[],"page":"x","posts":7,"comments":{}}',
)  # fmt: skip
_MIB = 1 << 20
_BOMB_MIB = 1024
"""What a bomb is once it is unpacked."""
_HUGE = 5_000_000
"""Characters of a huge post."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A request that comes to harm: the page it would get, the knobs, and dice of its own."""

    request: web.Request
    page: Page
    knobs: Knobs
    dice: Dice

    def with_body(self, body: bytes, **headers: str) -> web.Response:
        """The page's answer with another body."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=self.page.status, body=body, headers=JSON | named)

    def raw(self, body: bytes, *headers: str) -> web.Response:
        """These very bytes, whatever the headers say about them, and then the connection is closed."""
        head = "".join(f"{line}\r\n" for line in ("HTTP/1.1 200 OK", f"Content-Type: {JSON['Content-Type']}", *headers))
        return self.closed(f"{head}\r\n".encode() + body)

    def closed(self, last: bytes = b"") -> web.Response:
        """The connection is closed; the response that aiohttp insists on finds nobody to go to."""
        if self.request.transport is not None:
            self.request.transport.write(last)
            self.request.transport.close()
        return web.Response()

    async def stream(self, block: bytes, every_s: float) -> web.StreamResponse:
        """This block again and again, until the other side has had enough."""
        response = web.StreamResponse(headers=JSON)
        response.enable_chunked_encoding()
        try:
            await response.prepare(self.request)
            while True:
                await response.write(block)
                await asyncio.sleep(every_s)
        except ConnectionResetError:
            return response

    def half(self) -> bytes:
        """The page's first half."""
        return self.page.body[: len(self.page.body) // 2]

    def spoilt(self, inserted: bytes) -> web.Response:
        """The page with something at the beginning of its first text named body, or else of its first text."""
        at = b'"body":"' if b'"body":"' in self.page.body else b'":"'
        return self.with_body(self.page.body.replace(at, at + inserted, 1))


# Bodies that are not whole, or whose length is a lie.


async def cut(victim: Victim) -> web.StreamResponse:
    """Half the page, by its announced length."""
    return victim.raw(victim.half(), f"Content-Length: {len(victim.page.body)}")


async def cut_chunked(victim: Victim) -> web.StreamResponse:
    """Half the page in chunks, without the last chunk."""
    half = victim.half()
    return victim.raw(f"{len(half):x}\r\n".encode() + half + b"\r\n", "Transfer-Encoding: chunked")


async def cut_unmarked(victim: Victim) -> web.StreamResponse:
    """Half the page with no length at all: nothing says that it is not the whole."""
    return victim.raw(victim.half(), "Connection: close")


async def cut_gzip(victim: Victim) -> web.StreamResponse:
    """Half of the packed page; the announced length is that half's."""
    packed = gzip.compress(victim.page.body)
    return victim.with_body(packed[: len(packed) // 2], Content_Encoding="gzip")


async def not_gzip(victim: Victim) -> web.StreamResponse:
    """The page as it is, said to be packed."""
    return victim.with_body(victim.page.body, Content_Encoding="gzip")


async def length_too_long(victim: Victim) -> web.StreamResponse:
    """The whole page, with a hundred bytes more announced."""
    return victim.raw(victim.page.body, f"Content-Length: {len(victim.page.body) + 100}")


async def length_too_short(victim: Victim) -> web.StreamResponse:
    """The whole page, with half its length announced."""
    return victim.raw(victim.page.body, f"Content-Length: {len(victim.half())}")


# Bodies that are too much.


async def endless(victim: Victim) -> web.StreamResponse:
    """As fast as it is read, without end."""
    return await victim.stream(b" " * (_MIB // 4), 0)


async def drip(victim: Victim) -> web.StreamResponse:
    """A byte a second, without end."""
    return await victim.stream(b" ", 1)


async def length_of_a_tebibyte(victim: Victim) -> web.StreamResponse:
    """The page, with 1 TiB announced."""
    return victim.raw(victim.page.body, f"Content-Length: {1 << 40}")


async def bomb(victim: Victim) -> web.StreamResponse:
    """1 MiB that unpacks to 1 GiB."""
    return victim.with_body(_bomb(), Content_Encoding="gzip")


async def bomb_in_bomb(victim: Victim) -> web.StreamResponse:
    """A few kB that unpack to the bomb."""
    return victim.with_body(gzip.compress(_bomb()), Content_Encoding="gzip, gzip")


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * _MIB) * _BOMB_MIB


# Answers that lead elsewhere, or put off.


async def unavailable(victim: Victim) -> web.StreamResponse:
    """503, with a Retry-After."""
    return web.Response(status=503, headers={"Retry-After": str(victim.knobs.retry_after_s)})


async def away(victim: Victim) -> web.StreamResponse:
    """A redirect to one of the places that the knob names."""
    return web.Response(status=302, headers={"Location": victim.dice.pick(victim.knobs.away.split() or ["/"])})


async def loop(victim: Victim) -> web.StreamResponse:
    """A redirect to the same page."""
    return web.Response(status=302, headers={"Location": victim.request.path})


# Rubbish.


async def html(victim: Victim) -> web.StreamResponse:
    """A page for people, with status 200."""
    return web.Response(body=_HTML, content_type="text/html")


async def empty(victim: Victim) -> web.StreamResponse:
    """Status 200 and nothing else."""
    return victim.with_body(b"")


async def shapeless(victim: Victim) -> web.StreamResponse:
    """JSON, but no page."""
    return victim.with_body(victim.dice.pick(_SHAPES))


async def not_utf8(victim: Victim) -> web.StreamResponse:
    """The page with a byte in it that is no UTF-8."""
    return victim.spoilt(b"\xff")


# Content that is hard to keep.


async def nul(victim: Victim) -> web.StreamResponse:
    """The page with U+0000 in its text."""
    return victim.spoilt(b"\\u0000")


async def surrogate(victim: Victim) -> web.StreamResponse:
    """The page with half a surrogate pair in its text."""
    return victim.spoilt(b"\\ud83d")


async def huge(victim: Victim) -> web.StreamResponse:
    """The page with 5 MB more of text."""
    return victim.spoilt(b"x" * _HUGE)


Harm = Callable[[Victim], Awaitable[web.StreamResponse]]
HARMS: dict[str, Harm] = {
    harm.__name__: harm
    for harm in (
        cut, cut_chunked, cut_unmarked, cut_gzip, not_gzip, length_too_long, length_too_short,
        endless, drip, length_of_a_tebibyte, bomb, bomb_in_bomb,
        unavailable, away, loop, html, empty, shapeless, not_utf8, nul, surrogate, huge,
    )
}  # fmt: skip
"""Every harm by its name, as the knobs say it."""
