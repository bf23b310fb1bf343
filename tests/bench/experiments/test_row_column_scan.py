"""Rows against columns: what numbers make of the claims."""

from __future__ import annotations

import pytest

from memlint.bench.experiments.row_column_scan import (
    conflicts_answer,
    order_answer,
    slices_answer,
)
from memlint.bench.results import Standing
from tests.bench.samples import noisy, row


@pytest.mark.parametrize(
    ("ratio", "standing"),
    [
        (6.0, Standing.HOLDS), (13.5, Standing.PARTLY), (1.5, Standing.PARTLY),
        (1.0, Standing.DOES_NOT_HOLD), (0.5, Standing.DOES_NOT_HOLD),
    ],
)  # fmt: skip
def test_slices(ratio: float, standing: Standing) -> None:
    assert slices_answer(row(ratio)).standing is standing


def test_noise_says_nothing_of_slices() -> None:
    assert slices_answer(noisy(2.0)).standing is Standing.UNMEASURED


def test_the_interpreter_hides_the_order() -> None:
    found = order_answer([row(2.3), row(8.6)], row(1.0))
    assert found.standing is Standing.PARTLY
    assert "2.30 to 8.60 times" in found.measured
    assert "in pure Python they are not measurably slower" in found.measured


def test_the_order_of_all_loops() -> None:
    assert order_answer([row(4.0), row(9.0)], row(3.0)).standing is Standing.HOLDS
    assert order_answer([row(1.0), row(0.9)], row(1.0)).standing is Standing.DOES_NOT_HOLD
    assert order_answer([noisy()], noisy()).standing is Standing.UNMEASURED


def at(size: int, per_element: float) -> object:
    return row(2.0, size=size, seconds=per_element * size * size, nbytes=4 * size * size)


def test_conflicts_show_beside_powers_of_two() -> None:
    found = conflicts_answer([at(1000, 1e-9), at(1024, 8e-9), at(2000, 1e-9), at(2048, 5e-9)])
    assert found.standing is Standing.HOLDS
    assert "8.00 times at 1024, 5.00 times at 2048" in found.measured


def test_conflicts_at_some_sizes_or_none() -> None:
    some = [at(500, 1e-9), at(512, 1e-9), at(1000, 1e-9), at(1024, 8e-9)]
    assert conflicts_answer(some).standing is Standing.PARTLY
    assert conflicts_answer(some[:2]).standing is Standing.DOES_NOT_HOLD


def test_a_neighbour_is_near_and_no_power_of_two() -> None:
    assert conflicts_answer([at(700, 1e-9), at(1024, 9e-9)]).standing is Standing.UNMEASURED
    assert conflicts_answer([at(512, 1e-9), at(1024, 9e-9)]).standing is Standing.UNMEASURED
