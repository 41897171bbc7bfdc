"""The model says what its formulas say, and its constants are found again in figures made of them."""

import math
from dataclasses import asdict

import pytest

from bench.child import ROOT
from bench.fleet_model import HEADROOM, Constants, filled, fitted, fleet, idle, trips_per_s
from bench.scaling_run import ScalingRun
from bench.shard import ShardRun

CONSTANTS = Constants(
    page_us=40.0,
    trip_us=100.0,
    file_us=5.0,
    writer_us=5.0,
    idle_asked_per_s=1.5,
    own_us_per_s=1_000.0,
    idle_us_per_s=200.0,
    idle_bytes_per_s=300.0,
    lane_asked_per_s=5.0,
    lane_us_per_s=100.0,
    bytes_per_page=4_000.0,
    connections=2.0,
    connection_bytes=40_000.0,
    waiting_bytes=3_000.0,
    disk_bytes=5_000.0,
    writer_pages_per_s=1_000.0,
)


def test_constants_are_found_again() -> None:
    # Given figures of a page that costs 40 us and a trip that costs 100
    points = [(pages, 40 + 100 / pages) for pages in (1.0, 2.0, 4.0, 16.0, 64.0)]
    # Then the line through them has these constants
    assert fitted(points) == pytest.approx((40, 100))


def test_trips_never_outrun_pages_nor_the_linger() -> None:
    assert trips_per_s(0.1) == pytest.approx(0.1, rel=0.01)
    assert trips_per_s(10_000) == pytest.approx(40, rel=0.01)
    assert trips_per_s(10_000, redis_away_s=0.025) == pytest.approx(20, rel=0.01)


def test_a_fleet_is_its_workers() -> None:
    one, hundred = fleet(CONSTANTS, 1, 10.0), fleet(CONSTANTS, 100, 10.0)
    # 10 pages at 50 us, and 1 / (0.1 + 0.025) = 8 trips at 100 us, each second
    assert one.redis_cores == pytest.approx(10 * 50e-6 + 8 * 100e-6)
    assert hundred.redis_cores == pytest.approx(100 * one.redis_cores)
    assert hundred.shards == math.ceil(hundred.redis_cores / HEADROOM)
    assert hundred.network_mb_per_s == pytest.approx(1_000 * 4_000 / 1e6)
    # A connection is half of what a worker's two take
    assert hundred.writers == pytest.approx(1)
    assert hundred.connections == 200
    assert hundred.connections_mb == pytest.approx(4.0)


def test_tables_go_between_their_comments() -> None:
    # Given what a benchmark wrote, and the page
    run = ScalingRun(1, 1, 10, 80.0, 200.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 0)
    shard = ShardRun(2, "no", 0.0, 10, 10.0, 0.5, 90.0, 11_111.1, 2.0, 13.0, 1.0, 1.0, 0.0)
    document = {
        "constants": asdict(CONSTANTS),
        "replicas": [asdict(run)],
        "shard": [asdict(shard)],
        "quiet": asdict(shard),
    }
    page = (ROOT / "docs" / "scaling.md").read_text()
    # When it is filled
    text = filled(page, document)
    # Then the tables hold these figures, what is around them stays, and to fill it again changes nothing
    assert "| `trip_us` | 100 |" in text
    assert "| 2 | no | 10 | 50% | 90 | 90 | 11,111 |" in text
    assert text.splitlines()[0] == page.splitlines()[0]
    assert filled(text, document) == text
    # And a page without a place for one is refused
    with pytest.raises(ValueError, match="constants"):
        filled(page.replace("<!-- constants -->", ""), document)


def test_idle_workers_ask_for_each_lane() -> None:
    assert idle(CONSTANTS, 100, 1) == pytest.approx((150, 0.02))
    assert idle(CONSTANTS, 100, 8) == pytest.approx((4_000, 0.08))
