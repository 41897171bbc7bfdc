"""The service put together from its settings: which streams it reads, which store it writes."""

from __future__ import annotations

import signal

import structlog

from item_writer.stores import store_for
from item_writer.writer import Writer
from threadmill.model.config import Config, without_password
from threadmill.model.process import new_process_id
from threadmill.model.source import configured_sources, lanes_of
from threadmill.ops.stop import Stop
from threadmill.store.connection import connect, wait_until_ready
from threadmill.store.items import ItemStreams

logger = structlog.get_logger()


def serve(config: Config) -> None:
    """Write what is collected until SIGTERM or SIGINT; raises a `ThreadmillError` when it cannot begin."""
    # Until the writer runs there is nothing to finish: a signal ends the process at once, in good order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lanes = [lane for source in configured_sources(config) for lane in lanes_of(source, config)]
    store_url, redis_url = config.store_url.get_secret_value(), config.redis_url.get_secret_value()
    store = store_for(store_url)
    client = connect(redis_url)
    wait_until_ready(client, redis_url, wait_ms=config.redis_wait_ms, tell=logger.warning)
    consumer = new_process_id()
    with Stop() as stop:
        logger.info("writing items", consumer=consumer, lanes=len(lanes), store=without_password(store_url))
        written = Writer(ItemStreams(client, lanes, store.group, consumer), store, stop).run()
        logger.info("stopped", items=written)
    client.close()
