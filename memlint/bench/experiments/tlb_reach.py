"""What the translation of addresses costs, in small pages and in huge ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memlint.bench.chase import cycle, latency
from memlint.bench.curves import plateaus, steps
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import SLACK, standing, unmeasured, within
from memlint.bench.lab import Lab
from memlint.bench.pages import bytes_in_huge_pages, huge_pages, small_pages
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Standing, Unit

_PAGE = 4096
_LINE = 64
_LEAST, _QUICK, _FULL = 16, 16384, 65536
_SECONDS = 0.01
_FLOOR = 1e-9
_CLAIMED_ENTRIES = 4096
_CLAIMED_PAGES = 70_000
_CLAIMED_CYCLES = (100.0, 300.0)
_DRAMATIC, _LITTLE = 2.0, 1.1


@dataclass(frozen=True, slots=True)
class Translation:
    """What a curve of extra time over numbers of pages says: ``entries`` of the last level of the
    TLB, and the seconds of a miss right beyond it; ``farthest`` is that of the most pages."""

    entries: float
    miss: float
    farthest: float


class TlbReach(Experiment):
    """Latency against the number of pages: where it rises, the TLB ends.

    A compiled loop chases pointers in random order, one in each page of 4 KiB, in memory that asks
    for no huge pages, and at the same places of memory that asks for them. The same number of lines
    side by side takes the same room in the caches, but few pages: what each of the two takes more
    than that is what the translation of addresses costs. The first step of it is the end of
    the first level of the TLB, the next one the end of the last level, beyond which each
    access walks the page table. In a virtual machine, the pages of the host count as well."""

    name = "tlb-reach"
    needs = ("numpy", "numba", "linux")

    def run(self, lab: Lab) -> Found:
        """Chase through each number of pages."""
        import numpy as np

        most = lab.plan.size or (_FULL if lab.plan.full else _QUICK)
        counts = steps(_LEAST, most, *((1, 1.25, 1.5, 1.75) if lab.plan.full else (1, 1.5)))
        small, huge = small_pages(most * _PAGE), huge_pages(most * _PAGE)
        given = bytes_in_huge_pages(huge.ctypes.data, huge.nbytes)
        # In the same line of each page, all would compete for one set of the first cache.
        lines = np.random.default_rng(0).integers(0, _PAGE // _LINE, most, dtype=np.uint64)
        spread = (np.arange(most, dtype=np.uint64) * _PAGE + lines * _LINE) // 8
        packed = np.arange(most, dtype=np.uint64) * _LINE // 8
        curves: list[list[Point]] = [[], [], []]
        for count in counts:
            for curve, memory, places in zip(
                curves, (huge, small, huge), (packed, spread, spread), strict=True
            ):
                curve.append(latency(lab, count, memory, places[:count], _SECONDS))
        side_by_side, in_small, in_huge = curves
        found = translation(counts, extra(in_small, side_by_side))
        has_huge = given >= huge.nbytes
        return Found(
            plots=(_plot(side_by_side, in_small, in_huge if has_huge else []),),
            answers=(
                *entry_answers(found),
                walk_answer(found, cycle(lab)),
                huge_answer(in_small[-1].y, in_huge[-1].y if has_huge else None, most),
            ),
            notes=tuple(_notes(given, huge.nbytes)),
        )


def extra(one: Sequence[Point], base: Sequence[Point]) -> list[float]:
    """Seconds that points of one curve lie above those of another."""
    return [above.y - below.y for above, below in zip(one, base, strict=True)]


def translation(counts: Sequence[int], seconds: Sequence[float]) -> Translation | None:
    """What the extra seconds over numbers of pages say; ``None``: no two steps can be told.

    Differences of less than a nanosecond are noise."""
    found = plateaus(counts, [_FLOOR + max(one, 0.0) for one in seconds])
    if len(found) < 3:
        return None
    return Translation(found[1].reach, found[2].height - _FLOOR, seconds[-1])


def entry_answers(found: Translation | None) -> list[Answer]:
    """How many pages the TLB knows, beside how many it is said to know."""
    if found is None:
        why = "the curve shows no second step: no end of the TLB's last level can be told"
        return unmeasured(why, "tlb-reach", "huge-pages-fit")
    entries = round(found.entries, -2)
    measured = f"about {entries:.0f} entries"
    reach = amount(found.entries * _PAGE, Unit.BYTES)
    times = f"70000 are {ratio(_CLAIMED_PAGES / found.entries)} times as many"
    return [
        Answer(
            "tlb-reach",
            standing([within(found.entries, _CLAIMED_ENTRIES, _CLAIMED_ENTRIES)]),
            f"{measured}, {reach} of small pages",
        ),
        Answer(
            "huge-pages-fit",
            standing([found.entries >= _CLAIMED_PAGES / SLACK]),
            f"{measured}: {times}",
        ),
    ]


def walk_answer(found: Translation | None, cycle: float | None) -> Answer:
    """What a walk of the page table takes; ``cycle`` in seconds, if known."""
    if found is None:
        return Answer("page-walk", Standing.UNMEASURED, "no misses of the TLB can be told")
    times = f"{amount(found.miss, Unit.SECONDS)} beyond the TLB's reach"
    far = f"{amount(found.farthest, Unit.SECONDS)} with the most pages"
    if cycle is None:
        text = f"{times}, {far}; how long a cycle is, is not known"
        return Answer("page-walk", Standing.UNMEASURED, text)
    near_cycles, far_cycles = found.miss / cycle, found.farthest / cycle
    low, high = _CLAIMED_CYCLES
    meets = near_cycles <= high * SLACK and far_cycles >= low / SLACK
    return Answer(
        "page-walk",
        standing([meets, within(near_cycles, low, high) and within(far_cycles, low, high)]),
        f"{times}, {near_cycles:.0f} cycles; {far}, {far_cycles:.0f} cycles",
    )


def huge_answer(small: float, huge: float | None, pages: int) -> Answer:
    """Seconds of an access to so many pages, small ones and the same in huge ones; ``None``: the
    system gave none of these."""
    if huge is None:
        why = "the system gave no huge pages, though it was asked for them"
        return Answer("huge-pages", Standing.UNMEASURED, why)
    gain = small / huge
    return Answer(
        "huge-pages",
        standing([gain >= _LITTLE, gain >= _DRAMATIC]),
        f"{amount(small, Unit.SECONDS)} an access over {pages} small pages, "
        f"{amount(huge, Unit.SECONDS)} in huge ones: {ratio(gain)} times faster",
    )


def _notes(given: int, asked: int) -> list[str]:
    if given >= asked:
        return []
    asked_for = f"of {amount(asked, Unit.BYTES)} that asked for huge pages"
    return [f"{asked_for}, {amount(given, Unit.BYTES)} were given them"]


def _plot(packed: Any, small: Any, huge: Any) -> Plot:
    labels = ("lines side by side", "a line in each page of 4 KiB", "the same in pages of 2 MiB")
    curves = zip(labels, (packed, small, huge), strict=True)
    return Plot(
        "Latency of an access to one line in each page",
        "lines", "",
        "time per access", "s",
        tuple(Curve(label, tuple(points)) for label, points in curves if points),
    )  # fmt: skip
