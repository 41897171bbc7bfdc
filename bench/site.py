"""A forum so cheap to serve that it is never what a benchmark measures.

`python -m bench.site --port 0 --port-file PATH` serves `bench.pages` over HTTP/1.1 with keep-alive and
pipelining. It speaks only what a crawler's GET needs; a framework would spend most of a page's time on what
is left out here.
"""

import argparse
import asyncio
from pathlib import Path

from bench.pages import render
from bench.ports import announce_port

_HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_NOT_FOUND = b'{"error":"no such page"}'
_MAX_HEAD_BYTES = 64 * 1024


class Forum(asyncio.Protocol):
    """One connection: reads requests without bodies, answers each in order."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        if requests:
            self._transport.write(b"".join(map(_answer, requests)))
        if len(self._received) > _MAX_HEAD_BYTES:
            self._transport.abort()


def _answer(request: bytes) -> bytes:
    path = request.split(b" ", 2)[1] if request.startswith(b"GET ") else b""
    body = render(path)
    if body is None:
        return _HEAD % (b"404 Not Found", len(_NOT_FOUND)) + _NOT_FOUND
    return _HEAD % (b"200 OK", len(body)) + body


async def serve(port: int, port_file: Path | None) -> None:
    """Serves on loopback until cancelled; port 0 takes a free one and writes it to `port_file`."""
    server = await asyncio.get_running_loop().create_server(Forum, "127.0.0.1", port)
    announce_port(server, port_file)
    async with server:
        await server.serve_forever()


def main() -> None:
    """The command line of `python -m bench.site`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--port-file", type=Path, help="where to write the port")
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.port_file))


if __name__ == "__main__":
    main()
