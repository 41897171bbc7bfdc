"""The throughput benchmark's Redis: the best there is, and empty every time."""

from redis import Redis
from redis.exceptions import ResponseError

from bench.json_redis import best_server
from threadmill.ops.embedded import free_port


def test_each_run_has_an_empty_server() -> None:
    server, port = best_server(), free_port()
    for _ in range(2):
        with server.running(port), Redis(port=port) as redis:
            assert redis.info("server")["redis_version"] == server.version
            assert redis.dbsize() == 0
            redis.set("left", "over")


def test_json_is_what_it_says() -> None:
    server, port = best_server(), free_port()
    with server.running(port), Redis(port=port) as redis:
        try:
            redis.execute_command("JSON.SET", "document", "$", "{}")
            has_json = True
        except ResponseError:
            has_json = False
    assert has_json is server.json
