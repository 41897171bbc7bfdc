"""How processes are called: in worker lists, lease ids and consumer groups, and by health checks."""

from __future__ import annotations

import os
import secrets
import socket


def host_name() -> str:
    """This host, in at most twelve characters: a container's name is as long."""
    return socket.gethostname()[:12]


def new_process_id() -> str:
    """Short and unlike any other: host, process and four random characters."""
    return f"{host_name()}-{os.getpid()}-{secrets.token_hex(2)}"
