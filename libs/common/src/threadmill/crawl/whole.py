"""Whole bodies only: a packed body that was cut short is an error, not a shorter page."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

FORMATS = (b"gzip", b"x-gzip", b"deflate")
"""What is asked for (`LEAN`): zlib tells where it ends."""
GZIP = b"\x1f\x8b"
SLICE = 8_192
"""Bytes unpacked at a time: at most 8 MiB come out of them."""


class TruncatedError(OSError):
    """A packed body ends before its end."""


class WholeBodies:
    """The downloader middleware between the network and Scrapy's unpacking, which gives what there is of a cut body.

    A body whose length says that it was cut fails in Scrapy itself. This is for one that was cut before it was
    measured: of an HTML page that is not noticed, and what stood behind the cut would be lost.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._most = crawler.settings.getint("DOWNLOAD_MAXSIZE") or 1 << 62

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        packed = b",".join(response.headers.getlist("Content-Encoding")).rpartition(b",")[2].strip().lower()
        unpacked = packed not in FORMATS or not response.body or request.method == "HEAD"
        if unpacked or is_whole(response.body, _wbits(packed, response.body), self._most):
            return response
        raise TruncatedError(f"{response.url} answered with a {packed.decode()} body that was cut short")


def is_whole(body: bytes, wbits: int, most: int) -> bool:
    """Whether the body is unpacked to its end. One that is more than `most` bytes by then is for others to refuse."""
    at = unpacked = 0
    stream = zlib.decompressobj(wbits)
    with suppress(zlib.error):  # it is something else, or damaged: Scrapy knows what to do
        while not stream.eof and unpacked <= most:
            piece = body[at : at + SLICE]
            if not piece:
                return False
            unpacked += len(stream.decompress(piece))
            at += len(piece) - len(stream.unused_data)
            if stream.eof and body.startswith(GZIP, at):  # gzip may go on with another member
                stream = zlib.decompressobj(wbits)
    return True


def _wbits(packed: bytes, body: bytes) -> int:
    """What zlib calls the format; deflate comes with zlib's header, or without."""
    if packed != b"deflate":
        return 31
    return 15 if body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0 else -15
