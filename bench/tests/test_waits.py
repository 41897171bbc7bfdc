"""Quantiles, by values that can be counted on fingers."""

import pytest

from bench.waits import Waits


def test_quantiles() -> None:
    waits = Waits([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (waits.median, waits.quantile(0), waits.quantile(1)) == (3.0, 1.0, 5.0)
    assert waits.quantile(0.95) == pytest.approx(4.8)


def test_a_single_wait_is_all_quantiles() -> None:
    assert Waits([7.0]).cells() == ["1", "7.0", "7.0", "7.0", "7.0"]


def test_the_curve_rises_to_all() -> None:
    curve = Waits([float(ms) for ms in range(100)]).curve()
    assert curve[0] == (0.0, 0.0)
    assert curve[-1] == (99.0, 100.0)
    assert curve == sorted(curve)
