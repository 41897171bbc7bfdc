"""Connections to Redis, and what must be true of it before we use it."""

from __future__ import annotations

import time
from collections.abc import Callable

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    DataError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from threadmill.model.config import without_password
from threadmill.model.errors import ConfigError, StoreRefused, StoreUnavailable

Client = redis.Redis
"""A connection to Redis, for one thread. Outside `store` it is only passed on."""
STORE_FAILURES = (RedisError, OSError)
"""What a call raises when Redis does not answer or refuses."""
UNREACHABLE = (redis.ConnectionError, redis.TimeoutError, OSError)
"""Those of them that may pass: it does not answer."""

UnsendableError = DataError
"""What a call raises whose arguments are no text, bytes or numbers."""

MIN_VERSION = (6, 2)
BLOCK_MS = 2_000
"""Longest blocking read; below the socket's timeout, so that a dead connection is told from a quiet stream."""
SOCKET_TIMEOUT_S = 5.0


def connect(url: str) -> Client:
    """A client for one thread. It connects on first use and never retries by itself: the caller knows what is safe.

    It never sends PING by itself either (`health_check_interval`): a Redis whose disk is full refuses that, and would
    not even be looked at.
    """
    try:
        return redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
            socket_keepalive=True,
            encoding_errors="backslashreplace",  # a site's text may hold half of a surrogate pair
            retry=Retry(NoBackoff(), 0),
            client_name="threadmill",
        )
    except ValueError as error:
        raise ConfigError(f"THREADMILL_REDIS_URL is not a Redis URL: {error}") from None


def wait_until_ready(client: Client, url: str, *, wait_ms: int, tell: Callable[[str], None] = lambda _: None) -> None:
    """Wait until Redis answers and check that it is fit for use.

    Waits up to `wait_ms` with growing pauses (0.1 to 5 s), telling so; then raises `StoreUnavailable`. Who waits at all
    waits until Redis can write, too: the others may want to look only. Raises `StoreRefused` at once where waiting will
    not help: a wrong password, an old server, an evicting one.
    """
    deadline = time.monotonic() + wait_ms / 1000
    pause = 0.1
    while True:
        try:
            _check(client, url)
            if not wait_ms or not _cannot_write(client):
                return
            reason = "cannot write to its disk (its log says why)"
        except BusyLoadingError:
            reason = "is loading its data"
        except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
            raise StoreRefused(
                f"Redis at {without_password(url)} refused us ({error}); set user and password in THREADMILL_REDIS_URL"
            ) from None
        except ResponseError as error:
            raise StoreRefused(f"Redis at {without_password(url)} cannot be used: {error}") from None
        except (RedisError, OSError) as error:
            reason = f"does not answer ({error})"
        left = deadline - time.monotonic()
        if left <= 0:
            waited = f", waited {wait_ms / 1000:g} s (THREADMILL_REDIS_WAIT_MS)" if wait_ms else ""
            raise StoreUnavailable(
                f"Redis at {without_password(url)} {reason}{waited}; start it, or set THREADMILL_REDIS_URL"
            )
        tell(f"Redis at {without_password(url)} {reason}; waiting, {left:.0f} s left")
        time.sleep(min(pause, left))
        pause = min(pause * 2, 5.0)


def _cannot_write(client: Client) -> bool:
    """Whether its disk is full or broken: it refuses PING then, and with it work, but answers what reads."""
    try:
        client.ping()
    except ResponseError as error:
        if "MISCONF" not in str(error):
            raise
        return True
    return False


def _check(client: Client, url: str) -> None:
    server = client.info("server")
    version = str(server.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_VERSION:
        raise StoreRefused(f"Redis at {without_password(url)} is version {version}; 6.2 or newer is needed")
    if server.get("redis_mode") == "cluster":
        raise StoreRefused(
            f"Redis at {without_password(url)} is a Redis Cluster, which is not supported: use a single server"
        )
    policy = client.info("memory").get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StoreRefused(
            f"Redis at {without_password(url)} has maxmemory-policy {policy}: it would throw away work when full. "
            "Set it to noeviction (redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf)"
        )
