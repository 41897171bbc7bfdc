"""What an operator is told when a command failed at Redis: what is wrong, and what to do next, in one sentence."""

from __future__ import annotations

from contextlib import suppress

from threadmill.model.config import Config, without_password
from threadmill.model.errors import StoreError, StoreUnavailable, StoreUnreadable, ThreadmillError
from threadmill.ops.deployment import Deployment
from threadmill.store.connection import STORE_FAILURES
from threadmill.store.soundness import Fault, faults
from threadmill.store.trouble import is_unreadable, meaning


def explained(error: Exception) -> StoreError | None:
    """The error in plain words; None if it does not come of Redis, nor of what is in it: then it is a fault of ours."""
    config = Config.from_environment()
    if is_unreadable(error) and (found := _faults(config)):
        return StoreUnreadable(unreadable(found))
    if not isinstance(error, STORE_FAILURES) or isinstance(error, OSError):  # the client has errors of its own
        return None
    told = meaning(error) or f"failed: {error}"
    return StoreUnavailable(f"Redis at {without_password(config.redis_url.get_secret_value())} {told}")


def unreadable(found: list[Fault]) -> str:
    """One sentence on keys that cannot be read."""
    first, *rest = found
    others = f" ({len(rest)} other keys cannot be read either: threadmill doctor)" if rest else ""
    return (
        f"the Redis key {first.key} cannot be read: {first.problem}{others}. Threadmill did not write it so: "
        f"look at it with redis-cli, then rename or delete it, or mend the field"
    )


def _faults(config: Config) -> list[Fault]:
    with suppress(ThreadmillError, ValueError, *STORE_FAILURES):
        deployment = Deployment.connected(config)
        try:
            return faults(deployment.client, deployment.lanes())
        finally:
            deployment.client.close()
    return []
