"""Chases of pointers: each place tells where the next one is, so no access can begin before the
one before it has ended, and what a step takes is the latency of memory."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from memlint.bench.lab import Lab
from memlint.bench.results import Point

STEPS = 4096
"""Of a run: long beside the call, short beside a turn of the scheduler."""

_MOST_WARMED = 1 << 18
_SPINS = 10_000
_CYCLES_PER_SPIN = 6
_KNOWN = ("x86_64", "AMD64")


@lru_cache
def _walk() -> Callable[..., int]:
    from numba import njit

    @njit("uint64(uint64[::1], uint64, int64)")
    def walk(links: Any, at: Any, steps: Any) -> Any:
        # Signed places would be tested for being negative, which takes longer than the first cache.
        for _ in range(steps):
            at = links[at]
        return at

    return walk


@lru_cache
def _spin() -> Callable[..., int]:
    from numba import njit

    @njit("uint64(uint64, int64)")
    def spin(x: Any, count: Any) -> Any:
        for _ in range(count):
            x ^= x << 13
            x ^= x >> 7
            x ^= x << 17
        return x

    return spin


def link(links: Any, places: Any, seed: int = 0) -> int:
    """Join places of an array of uint64 to one cycle in random order; where it begins."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(places)
    links[order[:-1]] = order[1:]
    links[order[-1]] = order[0]
    return int(order[0])


class Chase:
    """A walk along links that goes on where it stopped."""

    def __init__(self, links: Any, at: int, places: int) -> None:
        self._walk, self._links, self._at = _walk(), links, at
        self.take(min(places, _MOST_WARMED))

    def take(self, steps: int) -> None:
        """Go so many steps."""
        self._at = self._walk(self._links, self._at, steps)

    def run(self) -> None:
        """Go :data:`STEPS` steps."""
        self.take(STEPS)


def latency(lab: Lab, x: float, links: Any, places: Any, seconds: float) -> Point:
    """Seconds of a step along some places in random order, measured for so many seconds.

    Raises :class:`~memlint.bench.lab.OutOfTime`."""
    chase = Chase(links, link(links, places), len(places))
    return lab.point(x, chase.run, seconds=seconds, parts=STEPS)


def cycle(lab: Lab) -> float | None:
    """Seconds of a cycle of the CPU, from a chain of shifts and exclusive ors, each of which takes
    one; ``None`` where that is not known of the architecture."""
    if platform.machine() not in _KNOWN:
        return None
    spin = _spin()
    parts = _SPINS * _CYCLES_PER_SPIN
    return lab.point(0, lambda: spin(88172645463325252, _SPINS), seconds=0.05, parts=parts).y
