"""Latency against the size of what is gone through."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

from memlint.bench.chase import latency
from memlint.bench.curves import Plateau, plateaus, steps
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import SLACK, standing, unmeasured, within
from memlint.bench.lab import Lab
from memlint.bench.machine import this_machine
from memlint.bench.pages import available_memory, bytes_in_huge_pages, huge_pages
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Standing, Unit
from memlint.doctor.host import this_host

_LINE = 64
_USUAL_L2, _USUAL_LAST = 1 << 20, 32 << 20
_LEAST = 4 << 10
_QUICK, _FULL = 128 << 20, 1 << 30
_LARGE = 16 << 20
_SECONDS = 0.02
_DRAM = 70e-9
_L1 = (1e-9, 4e-9)
_GAIN = (17.0, 70.0)
_AGAIN = 1.1
_BEYOND = 1.5
_STREAMED = 0.2


@dataclass(frozen=True, slots=True)
class Stream:
    """Seconds for each byte of an array that is added up again and again, and of arrays that are
    added up in turn."""

    nbytes: int
    again: Point
    anew: Point

    @property
    def gain(self) -> float:
        """How many times faster it is to read what was just read."""
        return self.anew.y / self.again.y


class WorkingSet(Experiment):
    """Latency of an access against the size of the working set: caches show as plateaus.

    A compiled loop chases pointers through working sets of 4 KiB and more, one in each line of 64
    bytes, in random order: no access can begin before the one before it has ended.  Huge pages
    are asked for, so that the translation of addresses adds little.  A cache is as large as where
    the latency has risen halfway to the next plateau; of a cache that is shared with others that
    is what was left of it.  Arrays within and beyond the last cache are also added up from end to
    end, again and again and in turn with others: what stays in the cache makes the difference."""

    name = "working-set"
    needs = ("numpy", "numba")

    def run(self, lab: Lab) -> Found:
        """Chase, then stream."""
        most = min(_FULL if lab.plan.full else _QUICK, available_memory() // 4)
        if lab.plan.size is not None:
            most = min(most, max(lab.plan.size, _LEAST))
        caches = this_machine(this_host()).caches
        inner, outer = caches.get("L2", _USUAL_L2), max(caches.values(), default=_USUAL_LAST)
        memory = huge_pages(most)
        given = 0
        if this_host().is_linux:
            given = bytes_in_huge_pages(memory.ctypes.data, memory.nbytes)
        chased = tuple(_chased(lab, memory, most))
        streamed = tuple(_streamed(lab, memory, inner, outer))
        found = plateaus([point.x for point in chased], [point.y for point in chased])
        return Found(
            plots=(_plot(chased, caches),),
            answers=(*latency_answers(found, most, outer), streaming_answer(streamed, outer)),
            notes=(described(found), pages_note(given, memory.nbytes)),
        )


def _chased(lab: Lab, memory: Any, most: int) -> Iterator[Point]:
    import numpy as np

    octave = (1, 1.25, 1.5, 1.75) if lab.plan.full else (1, 1.5)
    sizes = [size for size in steps(_LEAST, most, *octave) if lab.plan.full or size <= _LARGE]
    # Large ones take long to be made.
    for nbytes in sizes + steps(2 * sizes[-1], most, 1):
        places = np.arange(0, nbytes // 8, _LINE // 8, dtype=np.uint64)
        yield latency(lab, nbytes, memory, places, _SECONDS)


def _streamed(lab: Lab, memory: Any, inner: int, outer: int) -> Iterator[Stream]:
    """Arrays of half the cache ``inner`` and, where there is room, of twice the cache ``outer``."""
    sizes = [inner // 2, min(2 * outer, memory.nbytes // 2)]
    for nbytes in sizes if sizes[1] > _BEYOND * outer else sizes[:1]:
        count = memory.nbytes // nbytes
        if count < 2:
            continue
        arrays = memory[: count * (nbytes // 8)].reshape(count, nbytes // 8)
        again = lab.point(nbytes, arrays[0].sum, seconds=_STREAMED, parts=nbytes)
        anew = lab.point(nbytes, _InTurn(arrays), seconds=_STREAMED, parts=nbytes)
        yield Stream(nbytes, again, anew)


class _InTurn:
    """Adds up another array in each call."""

    def __init__(self, arrays: Any) -> None:
        self._turns = itertools.cycle(arrays)

    def __call__(self) -> Any:
        return next(self._turns).sum()


def latency_answers(found: Sequence[Plateau], most: float, last_cache: float) -> list[Answer]:
    """What plateaus of latencies, in seconds, up to a working set of ``most`` bytes say of the
    first cache and of memory."""
    if len(found) < 2:
        return unmeasured("no cache shows in the curve", "dram-latency", "l1-latency")
    # Farther out, translating addresses may take longer still.
    memory = next((one for one in found if one.begin >= last_cache), found[-1])
    first, last = found[0].height, memory.height
    gain = last / first
    # A plateau of some octaves that is the last one is memory, whatever the system says of caches.
    if most < last_cache and last < _DRAM / SLACK:
        why = f"all working sets fit the last cache, {amount(last_cache, Unit.BYTES)}"
        return unmeasured(why, "dram-latency", "l1-latency")
    return [
        Answer(
            "dram-latency",
            standing([within(last, _DRAM, _DRAM)]),
            f"{amount(last, Unit.SECONDS)} an access from {amount(memory.begin, Unit.BYTES)} on",
        ),
        Answer(
            "l1-latency",
            standing([within(first, *_L1), within(gain, *_GAIN)]),
            f"{amount(first, Unit.SECONDS)} in the first cache, {ratio(gain)} times less than "
            "beyond the last",
        ),
    ]


def streaming_answer(streams: Sequence[Stream], last_cache: float) -> Answer:
    """Whether lines are used once beyond the last cache: an array that is read again is no faster
    there than one that is new."""
    beyond = [one for one in streams if one.nbytes > last_cache]
    inside = [one for one in streams if one.nbytes <= last_cache]
    if not beyond:
        size = amount(2 * _BEYOND * last_cache, Unit.BYTES)
        why = f"it takes {size} of arrays: more than a quick run, or a quarter of the memory"
        return Answer("streaming", Standing.UNMEASURED, why)
    if not any(one.gain > _AGAIN for one in inside):
        why = "reading again shows no gain within the caches either"
        return Answer("streaming", Standing.UNMEASURED, why)
    kept = ", ".join(
        f"{ratio(one.gain)} times at {amount(one.nbytes, Unit.BYTES)}" for one in streams
    )
    return Answer(
        "streaming",
        standing(one.gain <= _AGAIN for one in beyond),
        f"an array that was just read is read faster than others {kept}",
    )


def described(found: Sequence[Plateau]) -> str:
    """The plateaus, in words."""
    parts = []
    for one in found:
        reach = "beyond" if isinf(one.reach) else f"up to {amount(one.reach, Unit.BYTES)}"
        parts.append(f"{amount(one.height, Unit.SECONDS)} {reach}")
    return f"an access takes {', '.join(parts)}" if parts else "the curve has no plateau"


def pages_note(huge: int, nbytes: int) -> str:
    """What pages the memory was made of."""
    if huge >= nbytes:
        return "all memory lay in huge pages"
    return (
        f"{amount(huge, Unit.BYTES)} of {amount(nbytes, Unit.BYTES)} lay in huge pages: the rest "
        "takes longer beyond the reach of the TLB"
    )


def _plot(chased: tuple[Point, ...], caches: Mapping[str, int]) -> Plot:
    return Plot(
        "Latency of an access in random order",
        "working set", "B",
        "time per access", "s",
        (Curve("pointer chase", chased),),
        marks=caches,
    )  # fmt: skip
