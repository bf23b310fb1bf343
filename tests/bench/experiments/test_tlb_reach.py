"""The reach of the TLB is found in curves with noise, and what numbers make of the claims."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from memlint.bench.curves import steps
from memlint.bench.experiments.tlb_reach import (
    Translation,
    entry_answers,
    extra,
    huge_answer,
    translation,
    walk_answer,
)
from memlint.bench.results import Standing
from tests.bench.samples import point

COUNTS = steps(16, 16384, 1, 1.5)


def curve(first: int, entries: int, hit: float, miss: float, seed: int) -> Sequence[float]:
    """Extra seconds over counts of pages, missing more and more where a level is full."""
    draw = random.Random(seed)
    found = []
    for count in COUNTS:
        seconds = 0.0
        for size, more in ((first, hit), (entries, miss - hit)):
            seconds += more * min(max((count / size - 0.75) * 2, 0.0), 1.0)
        found.append(seconds * draw.uniform(0.95, 1.05) + draw.uniform(-1e-10, 1e-10))
    return found


@pytest.mark.parametrize("entries", [1536, 2048, 3072])
@pytest.mark.parametrize("seed", range(10))
def test_the_last_level_is_found(entries: int, seed: int) -> None:
    found = translation(COUNTS, curve(96, entries, 2.4e-9, 17e-9, seed))
    assert found is not None
    assert found.entries == pytest.approx(entries, rel=0.15)
    assert found.miss == pytest.approx(17e-9, rel=0.1)


def test_noise_has_no_reach() -> None:
    draw = random.Random(0)
    assert translation(COUNTS, [draw.uniform(-1e-10, 3e-10) for _ in COUNTS]) is None


def test_extra_is_what_lies_above() -> None:
    assert extra([point(1, 5e-9)], [point(1, 2e-9)]) == pytest.approx([3e-9])


def found(entries: float, miss: float = 15e-9, farthest: float = 50e-9) -> Translation:
    return Translation(entries, miss, farthest)


@pytest.mark.parametrize(
    ("entries", "reach", "fit"),
    [
        (2048, Standing.DOES_NOT_HOLD, Standing.DOES_NOT_HOLD),
        (4000, Standing.HOLDS, Standing.DOES_NOT_HOLD),
        (80_000, Standing.DOES_NOT_HOLD, Standing.HOLDS),
    ],
)
def test_entries(entries: float, reach: Standing, fit: Standing) -> None:
    assert [one.standing for one in entry_answers(found(entries))] == [reach, fit]


def test_no_reach_is_no_answer() -> None:
    assert {one.standing for one in entry_answers(None)} == {Standing.UNMEASURED}
    assert walk_answer(None, 3e-10).standing is Standing.UNMEASURED


def test_cycles_of_a_walk() -> None:
    cycle = 1 / 3e9
    near = walk_answer(found(2048, 15e-9, 80e-9), cycle)
    assert near.standing is Standing.PARTLY
    assert "45 cycles" in near.measured
    assert "240 cycles" in near.measured
    assert walk_answer(found(2048, 50e-9, 80e-9), cycle).standing is Standing.HOLDS
    assert walk_answer(found(2048, 15e-9, 218e-9), cycle).standing is Standing.PARTLY
    assert walk_answer(found(2048, 150e-9, 218e-9), cycle).standing is Standing.DOES_NOT_HOLD
    assert walk_answer(found(2048, 5e-9, 6e-9), cycle).standing is Standing.DOES_NOT_HOLD
    assert walk_answer(found(2048), None).standing is Standing.UNMEASURED


def test_huge_pages_against_small_ones() -> None:
    assert huge_answer(90e-9, 22e-9, 16384).standing is Standing.HOLDS
    assert huge_answer(28e-9, 22e-9, 16384).standing is Standing.PARTLY
    assert huge_answer(22e-9, 22e-9, 16384).standing is Standing.DOES_NOT_HOLD
    assert huge_answer(90e-9, None, 16384).standing is Standing.UNMEASURED
