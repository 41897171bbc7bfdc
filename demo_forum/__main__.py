"""``python -m demo_forum``: serves a simulated forum until SIGTERM or SIGINT."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from demo_forum.config import ForumConfig
from demo_forum.knobs import Knobs
from demo_forum.server import create_app
from demo_forum.setting import add_settings, from_options

# Answers still being delayed when the forum is stopped are waited for this long.
_SHUTDOWN_TIMEOUT_S = 1.0


def main(arguments: list[str] | None = None) -> int:
    """Serves the forum that the command line describes. Returns the exit code (1: cannot listen)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        config, knobs = from_options(ForumConfig, options), from_options(Knobs, options)
    except ValueError as error:
        parser.error(str(error))
    try:
        asyncio.run(_serve(create_app(config, knobs), options.host, options.port, options.port_file))
    except OSError as error:
        sys.stderr.write(f"demo forum: cannot serve on {options.host}:{options.port}: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo_forum", description="Serves a simulated forum.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one (default: 0)")
    parser.add_argument("--port-file", type=Path, help="file to write the port to, once listening")
    add_settings(parser, ForumConfig)
    add_settings(parser, Knobs)
    return parser


async def _serve(app: web.Application, host: str, port: int, port_file: Path | None) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound = runner.addresses[0][1]
        if port_file is not None:
            _write_whole(port_file, f"{bound}\n")
        with contextlib.suppress(BrokenPipeError):  # whoever started it may not be reading
            sys.stdout.write(f"demo forum: http://{host}:{bound}\n")
            sys.stdout.flush()
        await stop.wait()
    finally:
        await runner.cleanup()


def _write_whole(path: Path, text: str) -> None:
    """Writes a file that nobody ever sees half written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
