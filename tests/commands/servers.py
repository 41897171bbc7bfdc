"""Redis servers that are ill, and what only looks like one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


@contextmanager
def listener(says: bytes = b"") -> Iterator[int]:
    """A port that accepts connections, and answers everything by the same line, or by nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=_serve, args=(server, says), daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _serve(server: socket.socket, says: bytes) -> None:
    kept = []
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            for each in kept:
                each.close()
            return
        kept.append(connection)
        if says:
            threading.Thread(target=_answer, args=(connection, says), daemon=True).start()


def _answer(connection: socket.socket, says: bytes) -> None:
    try:
        # A message of the client's may hold several commands; more answers than commands would be a protocol error.
        while request := connection.recv(65_536):
            connection.sendall(says * sum(line.startswith(b"*") for line in request.split(b"\r\n")))
    except OSError:
        return
