"""When a side has been timed enough, and what a long run's samples say."""

import pytest

from bench.run import Run
from bench.steady import Sample, by_tenth

RUN = Run("", "", "", "", 1000, 10, 1.0, seconds=3.0, least_pages=40, longest_seconds=12.0)


@pytest.mark.parametrize(
    ("pages", "seconds", "over"),
    [
        (999, 2.9, False),  # a fast side
        (1000, 1.0, True),
        (40, 3.0, True),  # one of usual speed
        (39, 3.0, False),  # a slow one goes on
        (39, 12.0, True),
        (0, 12.0, True),
    ],
)
def test_a_run_is_over(pages: int, seconds: float, over: bool) -> None:
    assert RUN.is_over(pages, seconds) is over
    assert Run.from_json(RUN.to_json()) == RUN


def test_samples_are_sorted_into_tenths() -> None:
    # Given samples every 25 pages of 1,000
    samples = [Sample(at / 10, at * 25, 100.0, 1.0) for at in range(1, 41)]
    # When they are sorted
    tenths = by_tenth(samples, 1000)
    # Then each tenth has those of its 100 pages, and the last the end as well
    assert [tenth[0].pages for tenth in tenths] == [25, *range(100, 1000, 100)]
    assert [len(tenth) for tenth in tenths] == [3, *[4] * 8, 5]


def test_a_run_without_samples_is_not_judged() -> None:
    with pytest.raises(RuntimeError, match="too short"):
        by_tenth([Sample(1.0, 100, 1.0, 1.0)], 1000)
