"""The model says what its formulas say, and its constants are found again in figures made of them."""

import math

import pytest

from bench.fleet_model import HEADROOM, Constants, fitted, fleet, idle, markdown, trips_per_s

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


def test_tables_have_a_row_for_each_fleet() -> None:
    constants = {name: getattr(CONSTANTS, name) for name in CONSTANTS.__dataclass_fields__}
    text = markdown({"constants": constants})
    assert "| `trip_us` | 100.0 |" in text
    assert len([line for line in text.splitlines() if line.startswith(("| 100 |", "| 1,000 |"))]) == 12


def test_idle_workers_ask_for_each_lane() -> None:
    assert idle(CONSTANTS, 100, 1) == pytest.approx((150, 0.02))
    assert idle(CONSTANTS, 100, 8) == pytest.approx((4_000, 0.08))
