"""A chase goes through all places, and comes back to the first."""

from __future__ import annotations

import numpy as np
import pytest

from memlint.bench.chase import STEPS, cycle, latency, link, walked
from memlint.bench.lab import Lab
from memlint.bench.plan import Plan

pytest.importorskip("numba")


def test_links_are_one_cycle_through_all_places() -> None:
    links = np.zeros(64, np.uint64)
    places = np.arange(0, 64, 8, dtype=np.uint64)
    at = begin = link(links, places)
    seen = []
    for _ in places:
        seen.append(at)
        at = int(links[at])
    assert at == begin
    assert sorted(seen) == list(places)


def test_a_walk_goes_on_where_it_stopped() -> None:
    count = 3 * STEPS // 2
    links = np.roll(np.arange(count, dtype=np.uint64), -1)
    go_on = walked(links, 0, 10)
    assert [go_on() for _ in range(3)] == [(10 + n * STEPS) % count for n in (1, 2, 3)]


def test_latencies_have_intervals() -> None:
    lab = Lab(Plan())
    places = np.arange(0, 512, 8, dtype=np.uint64)
    point = latency(lab, 4096, np.zeros(512, np.uint64), places, 0.001)
    assert point.x == 4096
    assert 0 < point.low <= point.y <= point.high < 1e-3


def test_the_cycle_is_one_of_a_cpu_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(Plan())
    found = cycle(lab)
    assert found is None or 1e-11 < found < 1e-7
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert cycle(lab) is None
