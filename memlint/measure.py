"""Timing two ways of doing the same thing, side by side.

Both run in turns, in an order drawn anew in each round, together with a control, the first way
once more, and with what the second way has to be prepared by.  Each is timed in a few blocks, of
which the quickest counts.  What is reported is the median of the ratios within rounds with its
confidence interval, so that drifts of the machine cancel, and the same of the control, which tells
what the machine makes of two things that are equal.

The numbers of rounds after which the ratios are looked at are fixed before the first round.  With
``k`` looks each interval is made for an error of 5 % / ``k``: so the chance that any of them misses
the true median is 5 % at most, and stopping at the first one that decides does not change that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb, log2
from statistics import median

LEAST_CLAIM = 1.1
"""Ratios below this are no measurable difference, whatever their interval."""

_CONFIDENCE = 0.95
_BLOCKS, _BLOCK_SECONDS = 3, 3e-4
_LONG_SECONDS, _MOST_TRIED = 5e-3, 0.1
_LOOKS = (12, 20, 34, 58, 100, 170)
_MOST_CALLS = 10_000
_TRIAL_CALLS = 20
_FAR_APART = 4.0
_FEWEST = 6

Run = Callable[[int], object]
"""One run of what is timed; it is given the number of the run, to choose its buffers by."""


class TooLong(Exception):  # noqa: N818 - it is no error of the program
    """So few rounds as tell anything would take longer than is allowed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of timing ``as_is`` against ``alternative``; times in seconds per run.

    ``ratio`` is as-is over alternative, with its confidence interval from ``low`` to ``high``;
    ``net_ratio`` is as-is over the alternative with its share of ``conversion``, what the
    alternative has to be prepared by; ``control_low`` and ``control_high`` are those of as-is
    against itself.  All intervals together are right in 95 % of all comparisons.
    """

    as_is: float
    alternative: float
    conversion: float
    ratio: float
    low: float
    high: float
    net_ratio: float
    net_low: float
    net_high: float
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

    @property
    def pays(self) -> bool:
        """Whether the alternative is measurably faster, its preparation included."""
        return self.is_slower and self.net_low > LEAST_CLAIM

    @property
    def is_decided(self) -> bool:
        """Whether more rounds would change nothing of what is concluded."""
        if self.high < LEAST_CLAIM or self.is_faster:
            return True
        return self.is_slower and not self.net_low <= LEAST_CLAIM <= self.net_high


def compare(
    as_is: Run,
    alternative: Run,
    *,
    budget: float,
    limit: float | None = None,
    conversion: Run | None = None,
    uses: float = 1.0,
    settle: Callable[[], object] = lambda: None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time two ways within about ``budget`` seconds, less where fewer decide.

    ``conversion`` has to be paid once for every ``uses`` of the alternative.  ``settle`` waits
    for what has been started, on a device say; it is called before the clock is read.  Raises
    :class:`TooLong` where the fewest rounds would take longer than ``limit`` seconds, and what the
    runs raise.
    """
    sampler = _Sampler(settle, clock)
    deadline = clock() + budget
    first, other = _alike(sampler.tried(as_is), sampler.tried(alternative))
    ways = [first, first, other]
    if conversion is not None:
        ways.append(sampler.tried(conversion))
    looks = _looks((deadline - clock()) / max(sum(way.seconds for way in ways), 1e-9))
    error = (1 - _CONFIDENCE) / len(looks)
    fewest = 1 + ceil(log2(1 / error))
    if limit is not None and fewest * sum(way.seconds for way in ways) > limit:
        raise TooLong
    draw = random.Random(seed)
    times: list[list[float]] = [[] for _ in ways]
    order = list(range(len(ways)))
    while True:
        draw.shuffle(order)
        for one in order:
            times[one].append(sampler.sample(ways[one]))
        done = len(times[0])
        over = done >= fewest and clock() >= deadline
        if over or done in looks:
            found = _summary(times, uses, 1 - error)
            if over or done == looks[-1] or found.is_decided:
                return found


def _looks(affordable: float) -> tuple[int, ...]:
    """The numbers of rounds after which to look; one look where there is time for few rounds."""
    looks = tuple(look for look in _LOOKS if look <= affordable)
    return looks or (1 + ceil(log2(1 / (1 - _CONFIDENCE))),)


def _summary(times: Sequence[Sequence[float]], uses: float, confidence: float) -> Comparison:
    # One sample of as-is against one of the alternative: where both are equal, either is the
    # longer one just as often, however skewed the noise is.  A mean of two would not be so.
    first, again, other = times[:3]
    prepared = times[3] if len(times) > 3 else [0.0] * len(first)
    share = 1 / max(uses, 1.0)
    whole = [a + b * share for a, b in zip(other, prepared, strict=True)]
    ratios, nets = _ratios(first, other), _ratios(first, whole)
    low, high = median_interval(ratios, confidence)
    net_low, net_high = median_interval(nets, confidence)
    control_low, control_high = median_interval(_ratios(first, again), confidence)
    return Comparison(
        median(first), median(other), median(prepared), median(ratios), low, high,
        median(nets), net_low, net_high, control_low, control_high, len(first),
    )  # fmt: skip


def _ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a / max(b, 1e-12) for a, b in zip(above, below, strict=True)]


@dataclass(frozen=True, slots=True)
class _Way:
    """What is timed, how long one run takes, in seconds, and how many runs make a block and how
    many blocks a sample.  The quickest block counts: what else the machine does only adds."""

    run: Run
    once: float
    calls: int
    blocks: int

    @property
    def seconds(self) -> float:
        """What a sample takes."""
        return self.once * self.calls * self.blocks


def _alike(one: _Way, other: _Way) -> tuple[_Way, _Way]:
    """Two ways with as many runs and blocks in a sample, unless they are far apart: where the noise
    is skewed, the median of samples depends on how many runs they are of."""
    if max(one.once, other.once) > _FAR_APART * min(one.once, other.once):
        return one, other
    calls, blocks = max(one.calls, other.calls), min(one.blocks, other.blocks)
    return (
        replace(one, calls=calls, blocks=blocks),
        replace(other, calls=calls, blocks=blocks),
    )


class _Sampler:
    """Times runs; each gets a number of its own, so that buffers rotate."""

    def __init__(self, settle: Callable[[], object], clock: Callable[[], float]) -> None:
        self._settle, self._clock = settle, clock
        self._number = 0

    def sample(self, way: _Way) -> float:
        """Seconds per run, in the quickest of the blocks."""
        return min(self._block(way.run, way.calls) for _ in range(way.blocks))

    def tried(self, run: Run) -> _Way:
        """How long a run takes, and how many make a block that the clock can tell apart."""
        self._block(run, 1)
        once = self._block(run, 1)
        if once < _MOST_TRIED:
            once = min(once, self._block(run, 1))
        if once * _TRIAL_CALLS < _BLOCK_SECONDS:
            once = min(self._block(run, _TRIAL_CALLS) for _ in range(2))
        calls = min(_MOST_CALLS, max(1, round(_BLOCK_SECONDS / max(once, 1e-9))))
        return _Way(run, once, calls, 1 if once > _LONG_SECONDS else _BLOCKS)

    def _block(self, run: Run, count: int) -> float:
        self._settle()
        number = self._number
        start = self._clock()
        for index in range(number, number + count):
            run(index)
        self._settle()
        elapsed = self._clock() - start
        self._number = number + count
        return elapsed / count


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


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds per run of one way: the median, with its confidence interval."""

    middle: float
    low: float
    high: float


def time_one(
    run: Run,
    *,
    budget: float,
    settle: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Reading:
    """Time one way within about ``budget`` seconds."""
    sampler = _Sampler(settle, clock)
    deadline = clock() + budget
    way = sampler.tried(run)
    times: list[float] = []
    while len(times) < _LOOKS[-1] and (len(times) < _FEWEST or clock() < deadline):
        times.append(sampler.sample(way))
    return Reading(median(times), *median_interval(times))


def weigh(
    as_is: Callable[[], float],
    alternative: Callable[[], float],
    *,
    rounds: int,
    grain: float = 0.0,
    limit: float | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Compare what two ways take, bytes say, in so many rounds; in fewer, but one at least, where
    ``limit`` seconds are over.

    Such numbers hardly change from one round to the next, and are slow to come by: instead of
    confidence intervals, the ones given span all rounds, each number being off by ``grain`` at
    most."""
    draw = random.Random(seed)
    ways = (as_is, as_is, alternative)
    found: list[list[float]] = [[] for _ in ways]
    order = list(range(len(ways)))
    start = clock()
    while len(found[0]) < rounds:
        draw.shuffle(order)
        for one in order:
            found[one].append(ways[one]())
        if limit is not None and clock() - start > limit:
            break
    first, again, other = found
    middle = median(_ratios(first, other))
    low, high = _span(first, other, grain)
    return Comparison(
        median(first), median(other), 0.0, middle, low, high, middle, low, high,
        *_span(first, again, grain), len(first),
    )  # fmt: skip


def _span(above: Sequence[float], below: Sequence[float], grain: float) -> tuple[float, float]:
    """The least and the greatest ratio, with numbers that are off by so much."""
    pairs = list(zip(above, below, strict=True))
    return (
        min(max(a - grain, 0.0) / max(b + grain, 1e-12) for a, b in pairs),
        max((a + grain) / max(b - grain, grain, 1e-12) for a, b in pairs),
    )
