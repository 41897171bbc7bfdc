"""Ratios are taken within a round; the claims say what was wanted of them."""

from typing import Any

from bench.summary import claims, paired, summarise


def _run(side: str, delay: float | None, pages_per_s: float) -> dict[str, Any]:
    figures = ("items", "pages", "seconds", "cpu_seconds", "cpu_ms_per_page", "peak_rss_mb", "redis_cpu_seconds")
    rest = ("redis_calls_per_page", "redis_cpu_us_per_page", "redis_peak_mb")
    return {"side": side, "redis_delay_ms": delay, "pages_per_s": pages_per_s, **dict.fromkeys(figures + rest, 1.0)}


# A machine that was twice as fast in the second round, and stumbled in the third while threadmill ran.
ROUNDS = [
    [
        _run("scrapy", None, 100),
        _run("threadmill", 2.0, 400),
        _run("threadmill", 20.0, 390),
        _run("threadmill", 0.0, 400),
    ],
    [
        _run("scrapy", None, 200),
        _run("threadmill", 2.0, 800),
        _run("threadmill", 20.0, 640),
        _run("threadmill", 0.0, 800),
    ],
    [
        _run("scrapy", None, 200),
        _run("threadmill", 2.0, 300),
        _run("threadmill", 20.0, 380),
        _run("threadmill", 0.0, 400),
    ],
]


def test_a_ratio_is_the_median_of_each_rounds_own() -> None:
    # The ratio of the medians would be 2, and of the means 3
    assert paired(ROUNDS, ("threadmill", 2.0), ("scrapy", None)) == 4.0


def test_a_side_that_was_not_run_has_no_ratio() -> None:
    assert paired(ROUNDS, ("threadmill", 2.0), ("crawlee", 2.0)) is None
    assert paired(ROUNDS, ("threadmill", 5.0), ("scrapy", None)) is None


def test_claims_are_made_for_what_was_measured_only() -> None:
    made = {claim.text: claim for claim in claims(ROUNDS, summarise(ROUNDS))}
    assert set(made) == {
        "threadmill's pages/s over scrapy's, Redis 2 ms away",
        "threadmill's pages/s with Redis 20 ms away over 0 ms",
        "threadmill, Redis 2 ms away: Redis calls per page",
        "threadmill, Redis 2 ms away: Redis CPU per page",
    }
    over_scrapy = made["threadmill's pages/s over scrapy's, Redis 2 ms away"]
    assert (over_scrapy.value, over_scrapy.bound, over_scrapy.kept) == (4.0, 3.5, True)
    assert made["threadmill's pages/s with Redis 20 ms away over 0 ms"].value == 0.95
    # One call a page is more than was promised
    assert not made["threadmill, Redis 2 ms away: Redis calls per page"].kept


def test_the_table_has_the_baseline_first_then_names_then_distances() -> None:
    rows = summarise(ROUNDS)
    order = [(row.side, row.redis_delay_ms) for row in rows]
    assert order == [("scrapy", None), ("threadmill", 0.0), ("threadmill", 2.0), ("threadmill", 20.0)]
    assert (rows[2].pages_per_s, rows[2].lowest, rows[2].highest) == (400, 300, 800)
