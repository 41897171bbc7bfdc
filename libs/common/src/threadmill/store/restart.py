"""What a Redis that was started again may still have at the end of its append-only file: half a transaction."""

from __future__ import annotations

import logging

from redis.exceptions import ResponseError

from threadmill.store.connection import Client

logger = logging.getLogger(__name__)


def mend_file(client: Client) -> bool:
    """Have Redis write its append-only file anew, unless it has done so since it started; answers whether it was asked.

    A power cut may leave the file with the first part of a transaction. Redis does not run that when it loads the file,
    but may leave it there, and then runs it at the *next* start, in one with the first transaction behind it (seen in
    6.2.14 and 7.0.15; docs/operations.md). A file that was written anew holds what Redis holds.
    """
    state = client.info("persistence")
    busy = state.get("aof_rewrite_in_progress") or state.get("aof_rewrite_scheduled")
    if not state.get("aof_enabled") or busy or state.get("aof_last_rewrite_time_sec", 0) >= 0:
        return False
    try:
        client.bgrewriteaof()
    except ResponseError as error:  # another asked at the same moment, or we may not ask
        logger.info("Redis does not write its append-only file anew: %s", error)
        return False
    return True
