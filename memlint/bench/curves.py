"""What a curve of latencies says: its plateaus, and where one ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

FEWEST = 3
"""Points of a plateau."""

_FLAT, _SAME = 1.3, 1.5


@dataclass(frozen=True, slots=True)
class Plateau:
    """``height`` is the median over its points, ``begin`` and ``end`` are where the first and the
    last of them lie; ``reach`` is where the curve has risen halfway to the next plateau, infinite
    for the last one."""

    height: float
    begin: float
    end: float
    reach: float


def plateaus(xs: Sequence[float], ys: Sequence[float]) -> tuple[Plateau, ...]:
    """Where a curve of positive values that rises by steps is flat.

    What falls, and single points far from both neighbours, are taken for noise.  A plateau rises
    by less than 30 %; those that differ by less than a half are one."""
    smooth = rising(without_outliers(ys))
    runs = list(_merged(smooth, list(_runs(smooth, 0, len(smooth)))))
    found = []
    for index, (begin, end) in enumerate(runs):
        reach = float("inf")
        if index + 1 < len(runs):
            half = (_height(smooth, runs[index]) + _height(smooth, runs[index + 1])) / 2
            reach = _crossing(xs, smooth, half)
        found.append(Plateau(_height(ys, (begin, end)), xs[begin], xs[end - 1], reach))
    return tuple(found)


def rising(ys: Sequence[float]) -> list[float]:
    """The nearest curve, by squares, that never falls.

    >>> rising([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    blocks: list[tuple[float, int]] = []
    for y in ys:
        total, count = y, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]


def without_outliers(ys: Sequence[float]) -> list[float]:
    """Each value, or the nearer one of its neighbours where it lies beyond both.

    >>> without_outliers([1.0, 9.0, 2.0, 3.0])
    [1.0, 2.0, 3.0, 3.0]
    """
    inner = [median(ys[place - 1 : place + 2]) for place in range(1, len(ys) - 1)]
    return [*ys[:1], *inner, *ys[len(inner) + 1 :]]


def _runs(ys: Sequence[float], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The longest flat run, those before it and those after it, in order."""
    best = (begin, begin)
    for start in range(begin, end):
        stop = start
        while stop < end and ys[stop] <= ys[start] * _FLAT:
            stop += 1
        if stop - start > best[1] - best[0]:
            best = (start, stop)
    if best[1] - best[0] >= FEWEST:
        yield from _runs(ys, begin, best[0])
        yield best
        yield from _runs(ys, best[1], end)


def _merged(ys: Sequence[float], runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last: tuple[int, int] | None = None
    for run in runs:
        if last is not None and _height(ys, run) < _SAME * _height(ys, last):
            last = (last[0], run[1])
        else:
            if last is not None:
                yield last
            last = run
    if last is not None:
        yield last


def _height(ys: Sequence[float], run: tuple[int, int]) -> float:
    return median(ys[run[0] : run[1]])


def _crossing(xs: Sequence[float], ys: Sequence[float], level: float) -> float:
    """Where a rising curve passes a level, between points as on a logarithmic x axis."""
    index = next(place for place, y in enumerate(ys) if y >= level)
    if index == 0:
        return xs[0]
    share = (level - ys[index - 1]) / (ys[index] - ys[index - 1])
    return exp(log(xs[index - 1]) + share * (log(xs[index]) - log(xs[index - 1])))


def steps(least: int, most: int, *per_octave: float) -> list[int]:
    """Numbers up to ``most``: ``least`` times each factor in ``per_octave``, doubled again and
    again.

    >>> steps(4, 16, 1, 1.5)
    [4, 6, 8, 12, 16]
    """
    found = []
    octave = least
    while octave <= most:
        found += [number for f in per_octave if (number := int(octave * f)) <= most]
        octave *= 2
    return found
