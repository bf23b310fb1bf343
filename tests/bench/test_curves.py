"""Plateaus are found in curves with noise, and where they end."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from memlint.bench.curves import plateaus, rising, steps, without_outliers


def cache_curve(*levels: tuple[int, float], noise: float, seed: int = 0) -> tuple[list, list]:
    """Latencies over working sets, half of all accesses missing where a cache is full by half."""
    draw = random.Random(seed)
    xs = steps(4 << 10, 64 << 20, 1, 1.5)
    ys = []
    for x in xs:
        y = levels[0][1]
        for (size, low), (_, high) in pairwise(levels):
            y += (high - low) * min(max((x / size - 0.75) * 2, 0.0), 1.0)
        ys.append(y * (1 + draw.uniform(-noise, noise)))
    return xs, ys


@pytest.mark.parametrize("seed", range(20))
def test_caches_are_found(seed: int) -> None:
    levels = (48 << 10, 1.7), (2 << 20, 5.4), (1 << 40, 130.0)
    found = plateaus(*cache_curve(*levels, noise=0.05, seed=seed))
    assert [one.height for one in found] == pytest.approx([1.7, 5.4, 130.0], rel=0.1)
    assert [one.reach for one in found[:2]] == pytest.approx([48 << 10, 2 << 20], rel=0.15)
    assert found[-1].reach == float("inf")


def test_a_flat_curve_is_one_plateau() -> None:
    xs, ys = cache_curve((1 << 40, 3.0), noise=0.1)
    (only,) = plateaus(xs, ys)
    assert (only.begin, only.end, only.reach) == (xs[0], xs[-1], float("inf"))


def test_a_single_outlier_is_no_plateau() -> None:
    assert len(plateaus([1, 2, 3, 4, 5, 6], [1.0, 1.0, 5.0, 1.0, 1.0, 1.0])) == 1


def test_an_outlier_makes_no_new_plateau_of_what_follows() -> None:
    xs, ys = cache_curve((48 << 10, 1.7), (1 << 40, 130.0), noise=0.05)
    ys[-4] *= 20
    assert [one.end for one in plateaus(xs, ys)][-1] == xs[-1]
    assert len(plateaus(xs, ys)) == 2


def test_outliers_take_the_value_of_the_nearer_neighbour() -> None:
    assert without_outliers([1.0, 5.0, 2.0, 0.1, 3.0]) == [1.0, 2.0, 2.0, 2.0, 3.0]
    assert without_outliers([1.0, 5.0]) == [1.0, 5.0]
    assert without_outliers([1.0]) == [1.0]
    assert without_outliers([]) == []


def test_a_steady_rise_has_none() -> None:
    assert plateaus([1, 2, 4, 8, 16], [1.0, 2.0, 4.0, 8.0, 16.0]) == ()


def test_slow_growth_is_one_plateau() -> None:
    found = plateaus(list(range(1, 9)), [5.4, 5.4, 6.0, 6.5, 7.1, 7.2, 7.3, 7.4])
    assert len(found) == 1


def test_what_falls_is_evened_out() -> None:
    assert rising([3.0, 1.0, 2.0]) == [2.0, 2.0, 2.0]
    assert rising([]) == []


def test_steps_end_where_they_should() -> None:
    assert steps(16, 100, 1, 1.25, 1.5) == [16, 20, 24, 32, 40, 48, 64, 80, 96]
    assert steps(16, 8, 1) == []
