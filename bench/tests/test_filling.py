"""What the benchmarks fill in is what the product's verbs would have put there, and is measured whole."""

from redis import Redis

from bench.filling import FIRST_POST, queue_requests, remember_fingerprints, remember_versions
from bench.memory import bytes_each
from bench.memory_ours import LANE, VERSION, requests
from bench.redis_server import redis_server
from threadmill.model.stages import DETAIL
from threadmill.store.calls import run
from threadmill.store.filters import ExactFilter, VersionedFilter, see
from threadmill.store.stage import StageStore
from threadmill.store.status import run_books
from threadmill.store.work import Record

STORE = StageStore(LANE, DETAIL)
ROOT = STORE.keys.seen


def leased(redis: Redis) -> list[Record]:
    """All that waits."""
    answer = run(redis, STORE.lease(100, worker="w", number=1, ttl_ms=60_000))
    return [lease.record for lease in answer.leases]


def test_queued_requests_are_as_admission_makes_them() -> None:
    with redis_server() as port, Redis(port=port) as redis:
        # Given two requests that went the whole way; when as many are filled in for their job; then they are the same
        requests(redis, 2)
        went = leased(redis)
        redis.flushall()
        queue_requests(redis, STORE.keys, went[0].job, 2)
        assert leased(redis) == went
        assert run_books(redis, LANE, DETAIL.name).balanced


def test_remembered_ids_are_known_to_the_filters() -> None:
    with redis_server() as port, Redis(port=port) as redis:
        remember_versions(redis, VersionedFilter(), ROOT, 50, VERSION)
        asked = [(str(FIRST_POST + n), VERSION) for n in (0, 49, 50)]
        assert [answer.new for answer in run(redis, see(VersionedFilter(), ROOT, asked))] == [False, False, True]
        redis.flushall()
        remember_fingerprints(redis, ExactFilter(), ROOT, 50_000)
        assert sum(redis.scard(key) for key in redis.keys("*")) == 50_000


def test_bytes_of_an_element_are_all_it_takes() -> None:
    # Given a list's worth of values of 1,000 bytes; when they are measured; then it is that, and a little for each
    def fill(redis: Redis, count: int) -> None:
        redis.rpush("list", *[b"x" * 1_000] * count)

    with redis_server() as port:
        assert 1_000 < bytes_each(port, fill, 2_000) < 1_100
