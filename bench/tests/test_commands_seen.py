"""Commands are counted as their clients send them."""

import time
from concurrent.futures import ThreadPoolExecutor

from redis import Redis

from bench.commands_seen import commands_seen
from bench.redis_server import redis_server

WATCHED_S = 1.0


def test_commands_of_clients_only() -> None:
    with redis_server() as port, Redis(port=port) as redis, ThreadPoolExecutor(1) as pool:
        redis.ping()
        redis.xgroup_create("stream", "group", mkstream=True)
        # Given somebody who counts
        counting = pool.submit(commands_seen, port, WATCHED_S)
        time.sleep(WATCHED_S / 4)
        # When a client sends a value that looks like MONITOR's own lines, a transaction, a script, and waits
        redis.set("a", "] \r\n+0.1 [0 lua] x")
        redis.pipeline().get("a").get("a").execute()
        redis.eval("redis.call('get', KEYS[1]) redis.call('get', KEYS[1])", 1, "a")
        redis.xreadgroup("group", "me", {"stream": ">"}, block=50)
        # Then each is counted once, and what the script did is not
        assert counting.result() == {"SET": 1, "MULTI": 1, "GET": 2, "EXEC": 1, "EVAL": 1, "XREADGROUP": 1}
