"""Timing against a clock that the test moves itself."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlint.measure import Comparison, compare, median_interval


class Machine:
    """A clock, and runs that move it."""

    def __init__(self, noise: float = 0.0) -> None:
        self.now = 0.0
        self.numbers: list[int] = []
        self._noise = noise
        self._draw = random.Random(1)

    def clock(self) -> float:
        return self.now

    def run(self, seconds: float, drift: float = 0.0) -> object:
        def run(number: int) -> None:
            self.numbers.append(number)
            factor = 1 + self._noise * (self._draw.random() - 0.5) + drift * self.now
            self.now += seconds * factor

        return run


def compared(slow: float, fast: float, *, noise: float = 0.1, drift: float = 0.0) -> Comparison:
    machine = Machine(noise)
    return compare(
        machine.run(slow, drift),  # type: ignore[arg-type]
        machine.run(fast, drift),  # type: ignore[arg-type]
        budget=1.0,
        clock=machine.clock,
    )


def test_the_ratio_and_the_times_are_those_of_the_runs() -> None:
    found = compared(2e-3, 1e-3)
    assert found.as_is == pytest.approx(2e-3, rel=0.05)
    assert found.alternative == pytest.approx(1e-3, rel=0.05)
    assert found.low <= 2.0 <= found.high
    assert found.low <= found.ratio <= found.high
    assert found.is_slower
    assert not found.is_faster


@pytest.mark.parametrize("seed", range(20))
def test_equal_ways_are_no_measurable_difference(seed: int) -> None:
    machine = Machine(noise=0.4)
    machine._draw = random.Random(seed)
    found = compare(
        machine.run(1e-3),  # type: ignore[arg-type]
        machine.run(1e-3),  # type: ignore[arg-type]
        budget=0.5,
        seed=seed,
        clock=machine.clock,
    )
    assert not found.is_slower
    assert not found.is_faster


def test_a_better_way_is_told_to_be_left_alone() -> None:
    assert compared(1e-3, 3e-3).is_faster


def test_a_machine_that_slows_down_changes_no_ratio() -> None:
    assert compared(2e-3, 1e-3, drift=2.0).ratio == pytest.approx(2.0, rel=0.15)


def test_short_runs_are_repeated_until_the_clock_can_tell_them() -> None:
    machine = Machine()
    run = machine.run(1e-7)
    found = compare(run, run, budget=0.01, clock=machine.clock)  # type: ignore[arg-type]
    assert found.as_is == pytest.approx(1e-7)
    assert len(machine.numbers) > 1000
    assert machine.numbers == sorted(machine.numbers)


def test_the_budget_is_kept() -> None:
    machine = Machine()
    run = machine.run(1e-3)
    compare(run, run, budget=0.3, clock=machine.clock)  # type: ignore[arg-type]
    assert machine.now < 0.4


def test_what_a_run_raises_is_raised() -> None:
    def fails(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        compare(fails, fails, budget=1.0)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=200))
def test_the_interval_holds_the_median(values: list[float]) -> None:
    low, high = median_interval(values)
    assert min(values) <= low <= median(values) <= high <= max(values)


def test_the_interval_is_right_as_often_as_it_says() -> None:
    draw = random.Random(2)
    inside = 0
    for _ in range(1000):
        low, high = median_interval([draw.gauss(0, 1) for _ in range(31)])
        inside += low <= 0 <= high
    assert 940 <= inside <= 985
