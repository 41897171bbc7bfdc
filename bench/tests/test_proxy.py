"""The proxy is distance, not bandwidth."""

import statistics
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from bench.child import server
from bench.redis_server import redis_server

DELAY_MS = 20.0
# What scheduling and Redis itself may take on a busy machine.
SLACK_MS = 10.0


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with (
        redis_server() as port,
        server("bench.proxy", "--to", str(port), "--delay-ms", str(DELAY_MS)) as far,
        Redis(port=far) as client,
    ):
        client.ping()  # connected
        yield client


def _ms(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


def test_a_round_trip_takes_the_delay(redis: Redis) -> None:
    # When twenty commands are sent one after the other
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        redis.ping()
        times.append(_ms(begin))
    # Then each takes the delay and a little
    assert min(times) >= DELAY_MS
    assert statistics.median(times) < DELAY_MS + SLACK_MS


def test_pipelined_commands_travel_together(redis: Redis) -> None:
    # Given a thousand commands in one pipeline
    pipeline = redis.pipeline(transaction=False)
    for number in range(1000):
        pipeline.echo(str(number))
    # When they are sent
    begin = time.perf_counter()
    answers = pipeline.execute()
    # Then they take about one delay, not a thousand, and arrive in order
    assert _ms(begin) < 5 * DELAY_MS
    assert answers == [str(number).encode() for number in range(1000)]


def test_a_large_value_arrives_whole(redis: Redis) -> None:
    # Given 20 MB that no socket buffer holds
    value = bytes(range(256)) * 80_000
    # When it goes there and back
    begin = time.perf_counter()
    redis.set("large", value)
    assert redis.get("large") == value
    # Then the delay does not act as a limit on bandwidth
    assert _ms(begin) < 5_000
