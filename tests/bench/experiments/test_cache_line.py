"""The size of a line is found in curves with noise."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from memlint.bench.experiments.cache_line import line_answer, line_size, waste_answer
from memlint.bench.results import Point, Standing
from tests.bench.samples import point

DISTANCES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)


def pairs(line: int, near: float, far: float, noise: float, seed: int = 0) -> list[Point]:
    draw = random.Random(seed)
    return [
        point(x, (near if x < line else far) * (1 + draw.uniform(-noise, noise)))
        for x in DISTANCES
    ]  # fmt: skip


@pytest.mark.parametrize("line", [32, 64, 128])
@pytest.mark.parametrize("seed", range(10))
def test_the_step_is_the_line(line: int, seed: int) -> None:
    assert line_size(pairs(line, 70e-9, 130e-9, 0.1, seed)) == line


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_line(seed: int) -> None:
    assert line_size(pairs(64, 70e-9, 70e-9, 0.1, seed)) is None


def test_one_slow_point_is_no_line() -> None:
    curve = pairs(64, 70e-9, 70e-9, 0.0)
    curve[3] = point(32, 200e-9)
    assert line_size(curve) is None


def test_a_line_beside_what_the_system_says() -> None:
    assert line_answer(64, 64).standing is Standing.HOLDS
    assert line_answer(64, 0).standing is Standing.HOLDS
    assert line_answer(32, 32).standing is Standing.DOES_NOT_HOLD
    assert line_answer(128, 128).standing is Standing.DOES_NOT_HOLD
    both = line_answer(128, 64)
    assert both.standing is Standing.PARTLY
    assert "two come at a time" in both.measured
    assert line_answer(None, 64).standing is Standing.UNMEASURED


def strides(times: float) -> Sequence[Point]:
    return [point(8, 1e-9), point(16, 2e-9), point(64, times * 1e-9)]


def test_how_much_of_a_line_is_wasted() -> None:
    assert waste_answer(strides(7.7), 64).standing is Standing.HOLDS
    assert waste_answer(strides(3.0), 64).standing is Standing.PARTLY
    assert waste_answer(strides(1.0), 64).standing is Standing.DOES_NOT_HOLD
    assert waste_answer(strides(7.7), 128).standing is Standing.UNMEASURED
