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


def walked(links: Any, at: int, warmed: int) -> Callable[[], int]:
    """What goes :data:`STEPS` steps on along links each time, after so many steps at once, and
    tells where it is."""
    walk = _walk()
    place = walk(links, at, warmed)

    def go_on() -> int:
        nonlocal place
        place = walk(links, place, STEPS)
        return place

    return go_on


def latency(lab: Lab, x: float, links: Any, places: Any, seconds: float) -> Point:
    """Seconds of a step along some places in random order, measured for so many seconds.

    Raises :class:`~memlint.bench.lab.OutOfTime`."""
    at = link(links, places)
    return latency_of_cycle(lab, x, links, at, seconds=seconds, warmed=len(places))


def latency_of_cycle(
    lab: Lab, x: float, links: Any, at: int, *, seconds: float, warmed: int = 0
) -> Point:
    """The same, along links that are there, after going so many steps of them."""
    run = walked(links, at, min(warmed, _MOST_WARMED))
    return lab.point(x, run, seconds=seconds, parts=STEPS)


def cycle(lab: Lab) -> float | None:
    """Seconds of a cycle of the CPU, from a chain of shifts and exclusive ors, each of which takes
    one; ``None`` where that is not known of the architecture."""
    if platform.machine() not in _KNOWN:
        return None
    spin = _spin()
    parts = _SPINS * _CYCLES_PER_SPIN
    return lab.point(0, lambda: spin(88172645463325252, _SPINS), seconds=0.05, parts=parts).y
