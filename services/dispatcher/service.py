"""The service put together from its settings: which lanes it serves, which boards file it reads."""

from __future__ import annotations

import signal
from dataclasses import asdict
from pathlib import Path

import structlog

from dispatcher.dispatcher import Dispatcher
from threadmill.model.boards_file import read_boards
from threadmill.model.config import Config
from threadmill.model.errors import ConfigError
from threadmill.model.process import new_process_id
from threadmill.model.source import configured_sources
from threadmill.ops.boards import load
from threadmill.ops.deployment import Deployment
from threadmill.ops.stop import Stop
from threadmill.store.connection import connect, wait_until_ready

logger = structlog.get_logger()


def serve(config: Config) -> None:
    """Dispatch boards until SIGTERM or SIGINT; raises a `ThreadmillError` when it cannot begin."""
    # Until the dispatcher runs there is nothing to finish: a signal ends the process at once, in good order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sources = {source.name: source for source in configured_sources(config)}
    file = Path(config.boards) if config.boards else None
    if file is not None:
        read_boards(file, sources)  # what is wrong with it ends the service now, and later only the attempt
    redis_url = config.redis_url.get_secret_value()
    client = connect(redis_url)
    wait_until_ready(client, redis_url, wait_ms=config.redis_wait_ms, tell=logger.warning)
    deployment = Deployment(config, sources, client)
    name = new_process_id()
    with Stop(reloads=True) as stop:
        stop.reload_requested = file is not None
        dispatcher = Dispatcher(
            client,
            deployment.lanes(),
            stop,
            name=name,
            threshold=config.threshold,
            reload=lambda: _load(deployment, file),
        )
        logger.info("dispatching boards", dispatcher=name, lanes=len(deployment.lanes()), boards=config.boards)
        scans = dispatcher.run()
        logger.info("stopped", scans=scans)
    client.close()


def _load(deployment: Deployment, file: Path | None) -> None:
    """Make the schedule what the boards file says. A file with a mistake changes nothing."""
    if file is None:
        logger.info("there is no boards file to read again: THREADMILL_BOARDS is empty")
        return
    try:
        loaded = load(deployment, read_boards(file, deployment.sources))
    except ConfigError as error:
        logger.error(f"{error}; the boards stay as they were")
        return
    logger.info("read the boards file", file=str(file), **asdict(loaded))
