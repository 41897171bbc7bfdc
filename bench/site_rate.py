"""How fast a forum serves pages: if not several times what a crawler asks, the forum is measured."""

import asyncio
import time
from collections.abc import Sequence
from itertools import cycle

from bench.callbacks import post_path

_CONNECTIONS = 16


def site_rate(port: int, post_ids: Sequence[str], seconds: float) -> float:
    """Post pages/s over 16 keep-alive connections on loopback, one request at a time on each.

    The client runs on the same machine and costs about as much as the site, so the figure is a lower bound.
    """
    return asyncio.run(_rate(port, post_ids, seconds))


async def _rate(port: int, post_ids: Sequence[str], seconds: float) -> float:
    paths = cycle([post_path(post_id).encode() for post_id in post_ids])
    begin = time.perf_counter()
    pages = await asyncio.gather(*(_visit(port, paths, begin + seconds) for _ in range(_CONNECTIONS)))
    return sum(pages) / (time.perf_counter() - begin)


async def _visit(port: int, paths: "cycle[bytes]", until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    pages = 0
    while time.perf_counter() < until:
        writer.write(b"GET " + next(paths) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            # An error is cheap to serve; counted as a page it would make a slow site look fast.
            raise RuntimeError(f"The site answered {head.splitlines()[0].decode()}")
        length = head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]
        await reader.readexactly(int(length))
        pages += 1
    writer.close()
    return pages
