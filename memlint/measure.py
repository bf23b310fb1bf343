"""Timing two ways of doing the same thing, side by side.

Both run in turns, in an order drawn anew in each round, together with a control: the first way
once more.  What is reported is the median of the ratios within rounds with its confidence
interval, so that drifts of the machine cancel, and the same of the control, which tells what
the machine makes of two things that are equal.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

LEAST_CLAIM = 1.1
"""Ratios below this are no measurable difference, whatever their interval."""

_CONFIDENCE = 0.95
_SAMPLE_SECONDS = 2e-4
_FEWEST_ROUNDS, _MOST_ROUNDS = 11, 401
_MOST_CALLS = 100_000

Run = Callable[[int], object]
"""One run of what is timed; it is given the number of the run, to choose its buffers by."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of timing ``as_is`` against ``alternative``; times in seconds per run.

    ``ratio`` is as-is over alternative, with its 95 % confidence interval from ``low`` to
    ``high``; ``control_low`` and ``control_high`` are those of as-is against itself.
    """

    as_is: float
    alternative: float
    ratio: float
    low: float
    high: float
    control_low: float
    control_high: float
    rounds: int

    @property
    def is_slower(self) -> bool:
        """Whether as-is is measurably slower than the alternative."""
        return self.low > max(LEAST_CLAIM, self.control_high)

    @property
    def is_faster(self) -> bool:
        """Whether as-is is measurably faster: it is to be left alone."""
        return self.high < min(1 / LEAST_CLAIM, self.control_low)


def compare(
    as_is: Run,
    alternative: Run,
    *,
    budget: float,
    settle: Callable[[], object] = lambda: None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time two ways within about ``budget`` seconds.

    ``settle`` waits for what has been started, on a device say; it is called before the clock
    is read.  Raises what the runs raise.
    """
    sampler = _Sampler(settle, clock)
    deadline = clock() + budget
    calls = [sampler.calibrated(as_is), sampler.calibrated(alternative)]
    draw = random.Random(seed)
    ways: list[tuple[Run, int]] = [(as_is, calls[0]), (as_is, calls[0]), (alternative, calls[1])]
    times: list[list[float]] = [[], [], []]
    order = [0, 1, 2]
    while len(times[0]) < _MOST_ROUNDS:
        if len(times[0]) >= _FEWEST_ROUNDS and clock() >= deadline:
            break
        draw.shuffle(order)
        for way in order:
            run, count = ways[way]
            times[way].append(sampler.sample(run, count))
    return _summary(*times)


def _summary(first: list[float], again: list[float], other: list[float]) -> Comparison:
    # Both samples of as-is are equally good; each round compares their mean.
    own = [(a + b) / 2 for a, b in zip(first, again, strict=True)]
    ratios = [a / max(b, 1e-12) for a, b in zip(own, other, strict=True)]
    control = [a / max(b, 1e-12) for a, b in zip(first, again, strict=True)]
    low, high = median_interval(ratios)
    control_low, control_high = median_interval(control)
    return Comparison(
        median(own), median(other), median(ratios), low, high, control_low, control_high, len(own)
    )


class _Sampler:
    """Times runs; each gets a number of its own, so that buffers rotate."""

    def __init__(self, settle: Callable[[], object], clock: Callable[[], float]) -> None:
        self._settle, self._clock = settle, clock
        self._number = 0

    def sample(self, run: Run, count: int) -> float:
        """Seconds per run, over ``count`` runs."""
        self._settle()
        number = self._number
        start = self._clock()
        for index in range(number, number + count):
            run(index)
        self._settle()
        elapsed = self._clock() - start
        self._number = number + count
        return elapsed / count

    def calibrated(self, run: Run) -> int:
        """How many runs make a sample that the clock can tell apart."""
        self.sample(run, 1)
        count = 1
        while count < _MOST_CALLS:
            elapsed = self.sample(run, count) * count
            if elapsed >= _SAMPLE_SECONDS:
                return count
            count = min(_MOST_CALLS, count * max(2, int(_SAMPLE_SECONDS / max(elapsed, 1e-9))))
        return count


def median_interval(
    values: Sequence[float], confidence: float = _CONFIDENCE
) -> tuple[float, float]:
    """The confidence interval of the median, by ranks: it supposes nothing of the distribution.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    (2.0, 8.0)
    """
    ordered = sorted(values)
    count = len(ordered)
    outside, rank = 0.0, 0
    # The chance that the median lies below the (rank + 1)-th value is that of so few heads.
    while rank < count // 2:
        outside += comb(count, rank) / 2**count
        if 2 * outside > 1 - confidence:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]
