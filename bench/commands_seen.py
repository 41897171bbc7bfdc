"""What arrives at a Redis: every command its clients send, as its MONITOR tells it, without those inside scripts."""

import socket
import time
from collections import Counter
from collections.abc import Iterator

_RECV_BYTES = 65536


def commands_seen(port: int, seconds: float) -> Counter[str]:
    """How often each command came in so many seconds, over all clients of the server on this loopback port.

    A blocking read counts when it comes; of a transaction, MULTI, EXEC and what is between them count one each; a
    script counts as one.
    """
    seen: Counter[str] = Counter()
    for line in _lines(port, seconds):
        # 1339518083.107412 [0 127.0.0.1:60866] "keys" "*"; a script's own commands have `lua` for the address
        where, _, command = line.partition(b"] ")
        if command and not where.endswith(b" lua"):
            seen[command.split(b" ", 1)[0].strip(b'"').decode().upper()] += 1
    return seen


def _lines(port: int, seconds: float) -> Iterator[bytes]:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"MONITOR\r\n")
        until, rest = time.monotonic() + seconds, b""
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                data = connection.recv(_RECV_BYTES)
            except TimeoutError:
                return
            if not data:
                raise RuntimeError("Redis closed the connection that was to count its commands")
            *lines, rest = (rest + data).split(b"\r\n")
            yield from lines
