"""How a child process tells its parent which port it got."""

import asyncio
import os
from pathlib import Path


def announce_port(server: asyncio.Server, port_file: Path | None) -> None:
    """Writes the server's port to `port_file`, or to the terminal without one."""
    port = server.sockets[0].getsockname()[1]
    if port_file is None:
        print(port, flush=True)
        return
    # Renamed into place: a parent that polls the file never reads half a number.
    written = port_file.with_suffix(f".{os.getpid()}")
    written.write_text(str(port))
    written.rename(port_file)
