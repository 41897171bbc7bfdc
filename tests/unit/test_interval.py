"""Intervals: even, by cron, adaptive. When a board is due next is a matter of arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from threadmill.model.duration import duration_text, seconds_of
from threadmill.model.interval import Adaptive, Cron, Every, Interval, read_interval

AT_MS = int(datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC).timestamp() * 1000)
INTERVALS = [Every(1), Every(600), Cron("*/15 * * * *"), Cron("0 4 * * MON", "Asia/Seoul"), Adaptive(60, 3600)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1d", 86_400), ("1w", 604_800), ("2d1s", 172_801)],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds
    assert seconds_of(duration_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "0s", "10", "m", "1m1h", "-5m", "1.5h", "367d", "9" * 40 + "s", "\u0661m"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="90s, 10m"):
        seconds_of(text)


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize("phase", [0.0, 0.37, 0.9999])
def test_the_next_time_is_always_later(interval: Interval, phase: float) -> None:
    # Given scans one after the other, each dispatched when it was due
    at_ms = AT_MS
    for _ in range(5):
        due_ms = interval.due_after(at_ms, phase=phase, pace_s=0)
        assert due_ms > at_ms
        at_ms = due_ms


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_an_interval_is_read_as_it_is_spelled(interval: Interval) -> None:
    spelled = interval.spelled()
    if "adaptive" in spelled:
        spelled["adaptive"] = tuple(spelled["adaptive"].values())
    assert read_interval(**spelled) == interval


# Even intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late_ms", [0, 1, 150_000, 300_000])
def test_a_late_scan_moves_no_later_one(late_ms: int) -> None:
    # Given a board of ten minutes, dispatched up to five minutes late; then the next time is as if it had not been
    every, due_ms = Every(600), 1_200_000_000
    assert every.due_after(due_ms + late_ms, phase=0, pace_s=0) == due_ms + 600_000


def test_what_was_missed_is_not_made_up_for() -> None:
    # Given a board that is dispatched two and a half intervals late; then the next is due at a time of its own, once
    every, due_ms = Every(600), 1_200_000_000
    assert every.due_after(due_ms + 1_500_000, phase=0, pace_s=0) == due_ms + 1_800_000


def test_boards_of_one_interval_are_spread_over_it() -> None:
    # Given a thousand boards dispatched at one instant; then they are due all over an interval, half an interval later
    times = [Every(600).due_after(AT_MS, phase=n / 1000, pace_s=0) - AT_MS for n in range(1000)]
    assert 300_000 <= min(times) < 301_000
    assert 899_000 < max(times) < 900_000
    assert len({time // 60_000 for time in times}) == 10


# Cron -----------------------------------------------------------------------------------------------------------------


def test_cron_is_utc_unless_a_time_zone_is_given() -> None:
    due_ms = Cron("30 4 * * *").due_after(AT_MS, phase=0.5, pace_s=0)
    assert datetime.fromtimestamp(due_ms / 1000, UTC) == datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
    due_ms = Cron("30 4 * * *", "Asia/Seoul").due_after(AT_MS, phase=0.5, pace_s=0)
    assert datetime.fromtimestamp(due_ms / 1000, UTC) == datetime(2026, 11, 20, 19, 30, tzinfo=UTC)


def test_the_hour_that_is_skipped_in_spring_is_not_skipped() -> None:
    # Given a board scanned at half past two, in a zone that has no such time on 28 March 2027
    zone = ZoneInfo("Europe/Berlin")
    before = int(datetime(2027, 3, 28, 0, 0, tzinfo=zone).timestamp() * 1000)
    due_ms = Cron("30 2 * * *", "Europe/Berlin").due_after(before, phase=0, pace_s=0)
    # Then it is scanned on that day even so
    assert datetime.fromtimestamp(due_ms / 1000, zone) == datetime(2027, 3, 28, 3, 0, tzinfo=zone)


@pytest.mark.parametrize(
    "expression", ["", "* * * *", "61 * * * *", "* * * * * *", "a b c d e", "0 0 30 2 *", "@daily"]
)
def test_what_is_no_cron_expression_is_named(expression: str) -> None:
    with pytest.raises(ValueError, match=r"cron expression|never comes"):
        Cron(expression)


def test_a_time_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Olympus"):
        Cron("* * * * *", "Mars/Olympus")
    with pytest.raises(ValueError, match="passwd"):
        Cron("* * * * *", "../../etc/passwd")


# Adaptive -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("brought", "pace_s"),
    [(0, 2000), (1, 2000), (3, 1291), (5, 1000), (7, 845), (20, 500), (80, 250), (100_000, 250)],
)
def test_the_pace_goes_by_what_a_scan_brought(brought: int, pace_s: int) -> None:
    assert Adaptive(60, 21_600).pace_after(1000, brought) == pace_s


def test_the_pace_stays_within_its_bounds() -> None:
    adaptive = Adaptive(60, 600)
    assert [adaptive.pace_after(pace_s, 1000) for pace_s in (0, 60, 100, 600)] == [60, 60, 60, 150]
    assert [adaptive.pace_after(pace_s, 0) for pace_s in (0, 60, 400, 600, 99_999)] == [120, 120, 600, 600, 600]
    assert adaptive.due_after(AT_MS, phase=0.9, pace_s=0) == AT_MS + 60_000
    assert adaptive.due_after(AT_MS, phase=0.9, pace_s=99_999) == AT_MS + 600_000


@pytest.mark.parametrize(("posts_per_hour", "pace_s"), [(1, 18_000), (10, 1800), (100, 180), (0.1, 21_600), (1000, 60)])
def test_a_steady_board_settles_at_five_posts_a_scan(posts_per_hour: float, pace_s: int) -> None:
    # Given a board with so many posts an hour, scanned for a while from either bound
    for start_s in (60, 21_600):
        adaptive, now_s, seen, pace = Adaptive(60, 21_600), 0.0, 0, start_s
        for _ in range(60):
            now_s += pace
            total = int(now_s * posts_per_hour / 3600)
            pace, seen = adaptive.pace_after(pace, total - seen), total
        # Then each scan brings about five, within the bounds
        assert pace == pytest.approx(pace_s, rel=0.25)


# Spelling -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ({}, "exactly one"),
        ({"every": "1m", "cron": "* * * * *"}, "exactly one"),
        ({"every": "1m", "timezone": "UTC"}, "goes with cron"),
        ({"every": "soon"}, "no duration"),
        ({"adaptive": ("6h", "1m")}, "min 6h above max 1m"),
        ({"adaptive": ("1m", "ever")}, "no duration"),
    ],
)
def test_an_interval_that_makes_no_sense_is_named(spelled: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_interval(**spelled)
