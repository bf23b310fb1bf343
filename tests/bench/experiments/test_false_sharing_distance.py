"""False sharing: slots hold what was added, and what numbers make of the claims."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from memlint.bench.experiments import false_sharing_distance
from memlint.bench.experiments.false_sharing_distance import sharing_answers
from memlint.bench.results import Point, Standing
from tests.bench.samples import point


def points(*nanoseconds: float) -> list[Point]:
    distances = (8, 16, 32, 64, 128, 256)
    return [point(x, y * 1e-9) for x, y in zip(distances, nanoseconds, strict=True)]


def standings(*nanoseconds: float, alone: float = 1.5) -> list[Standing]:
    return [one.standing for one in sharing_answers(points(*nanoseconds), alone * 1e-9)]


def test_lines_that_travel() -> None:
    assert standings(50, 50, 45, 1.6, 1.5, 1.5) == [Standing.HOLDS, Standing.HOLDS]
    assert standings(4, 4, 4, 1.6, 1.5, 1.5) == [Standing.PARTLY, Standing.HOLDS]


def test_neighbouring_lines_that_travel_too() -> None:
    found = sharing_answers(points(50, 50, 45, 6, 1.5, 1.5), 1.5e-9)
    assert [one.standing for one in found] == [Standing.HOLDS, Standing.PARTLY]
    assert "from 128 bytes on" in found[1].measured


def test_no_difference() -> None:
    assert standings(1.5, 1.5, 1.5, 1.5, 1.5, 1.5) == [
        Standing.DOES_NOT_HOLD, Standing.UNMEASURED,
    ]  # fmt: skip


def test_threads_that_took_turns_say_nothing() -> None:
    assert standings(5, 5, 5, 3, 3, 3) == [Standing.UNMEASURED] * 2


def test_each_thread_has_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    slots = np.zeros(64, np.uint64)
    monkeypatch.setattr(false_sharing_distance, "huge_pages", lambda nbytes: slots)
    before = threading.active_count()
    with false_sharing_distance._team(3) as bump:
        slots[:] = 0
        bump(8)
        bump(16)
    updates = false_sharing_distance._BUMPS
    assert {int(at): int(slots[at]) for at in np.flatnonzero(slots)} == {
        0: 2 * updates, 8: updates, 16: 2 * updates, 32: updates,
    }  # fmt: skip
    assert threading.active_count() == before
