"""What one access brings along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from memlint.bench.chase import latency_of_cycle
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import standing
from memlint.bench.lab import Lab
from memlint.bench.machine import this_machine
from memlint.bench.pages import available_memory, huge_pages
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Standing, Unit
from memlint.doctor.host import this_host

_QUICK, _FULL = 64 << 20, 512 << 20
_BLOCK = 2048
_DISTANCES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
_STRIDES = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
_CLAIMED = 64
_SECONDS = 0.04


class CacheLine(Experiment):
    """Size of the cache line: how far apart two places have to be for the second to miss.

    In memory far larger than the second-level cache, a compiled loop chases pointers from block to
    block in random order, and in each block to a second place: within the line of the first it
    costs next to nothing, beyond it as much as the first. Then a loop adds up one element in so
    many bytes of the same memory, from end to end: what it takes for each element grows with the
    stride as long as it uses less of the same lines."""

    name = "cache-line"
    needs = ("numpy", "numba")

    def run(self, lab: Lab) -> Found:
        """Go through all distances and strides."""
        most = min(_FULL if lab.plan.full else _QUICK, available_memory() // 4)
        memory = huge_pages(lab.plan.size or most)
        pairs = tuple(_pairs(lab, memory))
        strides = tuple(_strides(lab, memory))
        told = this_machine(this_host()).line
        line = line_size(pairs)
        marks = {"line": float(told)} if told else {}
        return Found(
            plots=(
                Plot(
                    "Chase to a second place in each block",
                    "distance of both places", "B",
                    "time per access", "s",
                    (Curve("pointer chase", pairs),),
                    log_y=False, marks=marks,
                ),
                Plot(
                    "One element in so many bytes, from end to end",
                    "stride", "B",
                    "time per element", "s",
                    (Curve("compiled sum", strides),),
                    marks=marks,
                ),
            ),
            answers=(line_answer(line, told), waste_answer(strides, line or told or _CLAIMED)),
        )  # fmt: skip


def _pairs(lab: Lab, memory: Any) -> Iterator[Point]:
    """Seconds of an access, half of which go to a second place of the block."""
    import numpy as np

    blocks = np.arange(memory.nbytes // _BLOCK, dtype=np.uint64) * (_BLOCK // 8)
    order = np.random.default_rng(0).permutation(blocks)
    for distance in _DISTANCES:
        second = order + np.uint64(distance // 8)
        memory[order] = second
        memory[second] = np.roll(order, -1)
        yield latency_of_cycle(lab, distance, memory, int(order[0]), seconds=_SECONDS)


def _strides(lab: Lab, memory: Any) -> Iterator[Point]:
    total = _total()
    for stride in _STRIDES:
        step = stride // 8
        run = partial(total, memory, step)
        yield lab.point(stride, run, seconds=_SECONDS, parts=memory.size // step)


def _total() -> Callable[[Any, int], Any]:
    from numba import njit

    @njit("uint64(uint64[::1], uint64)")
    def total(values: Any, step: Any) -> Any:
        found = values[0]
        at = step
        while at < values.size:
            found += values[at]
            at += step
        return found

    return total


def line_size(pairs: Sequence[Point]) -> int | None:
    """The bytes that come with one access: the first distance beyond the largest of all steps
    of the time for it.

    ``None``: no step sets small distances apart from large ones."""
    times = [point.y for point in pairs]
    steps = {place: min(times[place:]) / max(times[:place]) for place in range(1, len(times))}
    place = max(steps, key=lambda one: steps[one])
    return round(pairs[place].x) if steps[place] > _STEP else None


_STEP = 1.15
"""By how much the fastest access beyond a line takes longer than the slowest one within it."""


def line_answer(line: int | None, told: int) -> Answer:
    """Bytes of a line as found, and as the system tells; 0 where it does not."""
    if line is None:
        why = "no distance sets near places apart from far ones"
        return Answer("cache-line", Standing.UNMEASURED, why)
    says = f"; the system says {told}" if told else ""
    if told == _CLAIMED and line == 2 * told:
        text = f"lines of {told} bytes, as the system says, of which two come at a time"
        return Answer("cache-line", Standing.PARTLY, text)
    text = f"a place that is {line} bytes away misses, a nearer one does not{says}"
    return Answer("cache-line", standing([line == _CLAIMED]), text)


def waste_answer(strides: Sequence[Point], line: int) -> Answer:
    """Whether an element of 8 bytes costs what its line does, if it is the only one used of it."""
    by_stride = {point.x: point.y for point in strides}
    if line not in by_stride or 8 not in by_stride:
        why = f"no stride of {line} bytes was measured"
        return Answer("line-waste", Standing.UNMEASURED, why)
    times = by_stride[line] / by_stride[8]
    lost = line / 8
    return Answer(
        "line-waste",
        standing([times >= lost / 4, times >= lost / 2]),
        f"an element of 8 bytes takes {amount(by_stride[8], Unit.SECONDS)} beside the next one, "
        f"{amount(by_stride[line], Unit.SECONDS)} where each lies in a line of its own: "
        f"{ratio(times)} times",
    )
