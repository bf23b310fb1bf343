"""Threads that store side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import standing, unmeasured
from memlint.bench.lab import Lab
from memlint.bench.pages import huge_pages
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Standing, Unit

_DISTANCES = (8, 16, 32, 64, 128, 256)
_CLAIMED = 64
_BUMPS = 1_000_000
_MOST_THREADS = 8
_QUICK, _FULL = 0.1, 1.0
_MISS = 5.0
_DIFFERENT = 1.2
_IN_TURNS = 1.5


class FalseSharingDistance(Experiment):
    """Time of an update against the distance to what another thread updates.

    Threads run compiled loops that release the interpreter's lock; each adds to a slot of its own,
    at so many bytes from that of the next thread. A condition that always holds makes each update
    a store: without one, the compiler would keep the sum in a register and store it at the end, and
    there would be nothing to be seen. Slots that lie in one cache line make it travel between the
    cores. One thread alone
    tells whether they ran at the same time at all."""

    name = "false-sharing-distance"
    needs = ("numpy", "numba", "cpus")

    def run(self, lab: Lab) -> Found:
        """Go through all distances."""
        threads = max(2, min(lab.threads, _MOST_THREADS))
        with _team(threads) as bump:
            together = tuple(_points(lab, bump))
        with _team(1) as bump:
            alone = tuple(_points(lab, bump))
        return Found(
            plots=(
                Plot(
                    f"{threads} threads, each of which updates a slot of its own",
                    "distance of the slots", "B",
                    "time per update", "s",
                    (Curve(f"{threads} threads", together), Curve("one thread", alone)),
                    marks={"line": _CLAIMED},
                ),
            ),
            answers=tuple(sharing_answers(together, min(point.y for point in alone))),
        )  # fmt: skip


def _points(lab: Lab, bump: Callable[[int], None]) -> Iterator[Point]:
    seconds = _FULL if lab.plan.full else _QUICK
    for distance in _DISTANCES:
        yield lab.point(distance, partial(bump, distance // 8), seconds=seconds, parts=_BUMPS)


@contextmanager
def _team(threads: int) -> Iterator[Callable[[int], None]]:
    """What lets all threads update at once, at a distance in words; they wait in between."""
    import numpy as np

    update = _update()
    # A whole page begins a line, so slots at a distance of 64 bytes share none.
    slots = huge_pages(1 << 20)
    flags = np.ones(_BUMPS, np.uint8)
    update(slots, 0, flags[:1])
    meeting = threading.Barrier(threads)
    step = 0

    def work(number: int) -> None:
        while True:
            meeting.wait()
            if not step:
                return
            update(slots, number * step, flags)
            meeting.wait()

    others = [threading.Thread(target=work, args=(number,)) for number in range(1, threads)]
    for one in others:
        one.start()

    def bump(distance: int) -> None:
        nonlocal step
        step = distance
        meeting.wait()
        update(slots, 0, flags)
        meeting.wait()

    try:
        yield bump
    finally:
        step = 0
        meeting.wait()
        for one in others:
            one.join()


def _update() -> Callable[[Any, int, Any], None]:
    from numba import njit

    @njit("void(uint64[::1], uint64, uint8[::1])", nogil=True)
    def update(slots: Any, at: Any, flags: Any) -> None:
        for i in range(flags.size):
            if flags[i]:
                slots[at] += 1

    return update


def sharing_answers(points: Sequence[Point], alone: float) -> list[Answer]:
    """What seconds per update over distances in bytes say, beside those of one thread ``alone``;
    the farthest share nothing."""
    apart = points[-1].y
    if apart > _IN_TURNS * alone:
        why = (
            f"threads take {ratio(apart / alone)} times as long as one alone with their slots far "
            "apart: they share a core, or other programs keep the CPUs busy"
        )
        return unmeasured(why, "false-sharing", "padding")
    times = {point.x: point.y / apart for point in points}
    near = times[min(times)]
    at_line = times[_CLAIMED]
    sharing = Answer(
        "false-sharing",
        standing([near > _DIFFERENT, near > _MISS]),
        f"{amount(points[0].y, Unit.SECONDS)} an update at {points[0].x:.0f} bytes, "
        f"{amount(apart, Unit.SECONDS)} at {points[-1].x:.0f}: {ratio(near)} times",
    )
    if near <= _DIFFERENT:
        return [sharing, *unmeasured("no false sharing shows at any distance", "padding")]
    beyond = min(x for x, time in times.items() if time <= _DIFFERENT)
    return [
        sharing,
        Answer(
            "padding",
            Standing.HOLDS if at_line <= _DIFFERENT else Standing.PARTLY,
            f"{ratio(at_line)} times at {_CLAIMED} bytes; no more loss from {beyond:.0f} bytes on",
        ),
    ]
