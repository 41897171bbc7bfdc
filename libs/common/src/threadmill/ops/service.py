"""What every service's entry point does: settings, logs, and one plain sentence when something is wrong."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

import structlog

from threadmill.model.config import Config
from threadmill.model.errors import ConfigError, SourceError, StoreError, ThreadmillError

EXIT_CONFIG = 2
EXIT_STORE = 3
EXIT_OTHER = 1


def run_service(name: str, serve: Callable[[Config], None]) -> int:
    """Run a service; the process's exit status: 0 stopped in good order, 2 settings, 3 Redis, 1 anything else."""
    # Until the service handles signals itself there is nothing to finish. As process 1 it would not even hear them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        config = Config.from_environment()
        configure_logs(config, name)
        serve(config)
    except ThreadmillError as error:
        print(f"{name}: {error}", file=sys.stderr)  # noqa: T201
        return exit_status(error)
    except KeyboardInterrupt:
        return 0
    return 0


def exit_status(error: ThreadmillError) -> int:
    if isinstance(error, ConfigError | SourceError):
        return EXIT_CONFIG
    return EXIT_STORE if isinstance(error, StoreError) else EXIT_OTHER


def configure_logs(config: Config, service: str) -> None:
    """All logs, ours and the libraries', as one line each on standard error: for people, or as JSON."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    render = (
        structlog.processors.JSONRenderer()
        if config.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    )
    last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if config.log_format == "json":
        last.append(structlog.processors.format_exc_info)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[*last, render]))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(config.log_level)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
