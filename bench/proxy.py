"""A TCP proxy that puts Redis further away.

`python -m bench.proxy --listen 0 --to PORT --delay-ms 2 --port-file PATH`

A round trip takes `--delay-ms` longer, half of it each way. It is distance, not bandwidth: whatever arrives
is sent on after the same time, in order, however much is already under way; a thousand pipelined commands
arrive about as late as one.
"""

import argparse
import asyncio
import selectors
from collections import deque
from pathlib import Path

from bench.ports import announce_port


class Pipe:
    """One direction of one connection: bytes in now, out after `delay_s` seconds, in order.

    What is under way is kept in memory without bound; on loopback that is bandwidth times delay, a few
    megabytes.
    """

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        # (due, data); empty data is the end of the stream
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.output: asyncio.Transport | None = None

    def send(self, data: bytes) -> None:
        """Takes bytes; empty bytes end the stream once everything before them has arrived."""
        self._under_way.append((self._loop.time() + self._delay_s, data))
        if self._timer is None:
            self._arm()

    def connect(self, output: asyncio.Transport) -> None:
        """Opens the far end; what was sent before waits for it."""
        self.output = output
        self._arm()

    def _arm(self) -> None:
        # One timer for the head of the line: a timer for each chunk could fire out of order on equal times.
        if self._under_way and self.output is not None:
            self._timer = self._loop.call_at(self._under_way[0][0], self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        now = self._loop.time()
        arrived = []
        while self._under_way and self._under_way[0][0] <= now:
            arrived.append(self._under_way.popleft()[1])
        assert self.output is not None
        if not self.output.is_closing():
            self.output.write(b"".join(arrived))
            if arrived and not arrived[-1]:
                self.output.close()
        self._arm()


class End(asyncio.Protocol):
    """One socket: what it receives goes into `outgoing`, what `incoming` delivers is written to it."""

    def __init__(self, outgoing: Pipe, incoming: Pipe) -> None:
        self._outgoing = outgoing
        self._incoming = incoming

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._incoming.connect(transport)

    def data_received(self, data: bytes) -> None:
        self._outgoing.send(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._outgoing.send(b"")


class Proxy:
    """Accepts connections on loopback and carries each to `port`, `delay_s` seconds away either way."""

    def __init__(self, port: int, delay_s: float) -> None:
        self._port = port
        self._delay_s = delay_s
        self._dials: set[asyncio.Task[None]] = set()

    def accept(self) -> End:
        """The near end of a new connection; the far end is being dialled."""
        there, back = Pipe(self._delay_s), Pipe(self._delay_s)
        dial = asyncio.ensure_future(self._dial(there, back))
        # The loop holds tasks weakly; an unreferenced one may vanish before it has run.
        self._dials.add(dial)
        dial.add_done_callback(self._dials.discard)
        return End(outgoing=there, incoming=back)

    async def _dial(self, there: Pipe, back: Pipe) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: End(back, there), "127.0.0.1", self._port)
        except OSError:
            back.send(b"")  # nobody listens there: the caller sees its connection closed


async def serve(listen: int, to: int, delay_ms: float, port_file: Path | None) -> None:
    """Carries connections until cancelled; `listen` 0 takes a free port and writes it to `port_file`."""
    proxy = Proxy(to, delay_ms / 2 / 1000)
    server = await asyncio.get_running_loop().create_server(proxy.accept, "127.0.0.1", listen)
    announce_port(server, port_file)
    async with server:
        await server.serve_forever()


def precise_loop() -> asyncio.AbstractEventLoop:
    """A loop with microsecond timers: epoll's are whole milliseconds, too coarse for 1 ms each way."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """The command line of `python -m bench.proxy`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--to", type=int, required=True, help="the server's port on loopback")
    parser.add_argument("--delay-ms", type=float, required=True, help="added to a round trip")
    parser.add_argument("--port-file", type=Path, help="where to write the port")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(serve(options.listen, options.to, options.delay_ms, options.port_file))


if __name__ == "__main__":
    main()
