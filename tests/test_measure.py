"""Timing against a clock that the test moves itself."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlint.measure import (
    LEAST_CLAIM,
    Comparison,
    Run,
    TooLong,
    compare,
    median_interval,
    weigh,
)


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


class Noisy:
    """A machine of which nothing can be relied on: it drifts, and stalls now and then."""

    def __init__(self, seed: int, noise: float) -> None:
        self.now, self._noise = 0.0, noise
        self._draw = random.Random(seed)
        self._drift = self._draw.uniform(-0.3, 0.3)

    def clock(self) -> float:
        return self.now

    def run(self, seconds: float) -> Run:
        def run(number: int) -> None:
            factor = math.exp(self._draw.gauss(0, self._noise) + self._drift * self.now)
            # Fifty times a second something else runs, for ten milliseconds or so.
            stalls = self._draw.random() < 50 * seconds
            stall = self._draw.expovariate(100) if stalls else 0.0
            self.now += seconds * factor + stall

        return run

    def compared(self, slow: float, fast: float, seed: int, conversion: float = 0.0) -> Comparison:
        return compare(
            self.run(slow),
            self.run(fast),
            budget=1.0,
            conversion=self.run(conversion) if conversion else None,
            seed=seed,
            clock=self.clock,
        )


@pytest.mark.parametrize("noise", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("seconds", [2e-5, 1.3e-3, 3e-2])
def test_equal_ways_are_no_measurable_difference(noise: float, seconds: float) -> None:
    silent = 0
    for seed in range(100):
        found = Noisy(seed, noise).compared(seconds, seconds, seed)
        silent += not found.is_slower and not found.is_faster
    assert silent >= 95


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_stopping_early_makes_the_intervals_no_less_right(noise: float) -> None:
    # The true ratio lies where it is decided: looking again and again would go wrong here.
    right = wrong = 0
    for seed in range(200):
        found = Noisy(seed, noise).compared(LEAST_CLAIM * 1e-3, 1e-3, seed)
        right += found.low <= LEAST_CLAIM <= found.high
        wrong += found.is_slower
    assert right >= 190
    assert wrong <= 10


def test_a_clear_difference_needs_few_rounds() -> None:
    found = Noisy(1, 0.1).compared(3e-3, 1e-3, seed=1)
    assert found.is_slower
    assert found.rounds == 12
    unclear = Noisy(1, 0.3).compared(1.1e-3, 1e-3, seed=1)
    assert unclear.rounds > 50


def test_a_conversion_is_charged_in_each_round() -> None:
    found = Noisy(2, 0.05).compared(3e-3, 1e-3, 2, conversion=4e-3)
    assert found.ratio == pytest.approx(3.0, rel=0.1)
    assert found.net_ratio == pytest.approx(0.6, rel=0.1)
    assert found.conversion == pytest.approx(4e-3, rel=0.1)
    assert found.is_slower
    assert not found.pays
    assert found.net_low <= 0.6 <= found.net_high


def test_long_runs_get_few_rounds_and_too_long_ones_none() -> None:
    machine = Noisy(3, 0.02)
    found = machine.compared(0.2, 0.1, 3)
    assert found.rounds == 6
    began = machine.now
    with pytest.raises(TooLong):
        compare(machine.run(1.0), machine.run(1.0), budget=1.0, limit=5.0, clock=machine.clock)
    # The trials that tell so, and no round.
    assert machine.now - began < 6.0


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


def test_bytes_are_off_by_their_grain() -> None:
    found = weigh(lambda: 1000.0, lambda: 100.0, rounds=1, grain=10.0)
    assert found.ratio == 10.0
    assert (found.low, found.high) == (990 / 110, 1010 / 90)
    assert weigh(lambda: 5.0, lambda: 5.0, rounds=2, grain=10.0).control_low == 0.0
