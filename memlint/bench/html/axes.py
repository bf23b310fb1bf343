"""Axes of plots: where values lie on them, and which are labelled how."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memlint.bench.quantities import nbytes
from memlint.report.html.quantities import round_step

_ROOM = 0.04
"""Of the axis, at each of its ends."""
_PREFIXES = (
    (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"),
    (1e-9, "n"), (1e-12, "p"), (1e-15, "f"),
)  # fmt: skip
_NOT_ABOVE = {"s": 1.0}
"""Units that have no prefix above this: nobody counts in kiloseconds."""


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high``, logarithmic where ``log`` says so; both are then above 0."""

    low: float
    high: float
    log: bool
    unit: str

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one; the next end, if beyond."""
        low, high, at = (self._scaled(one) for one in (self.low, self.high, value))
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high

    def _scaled(self, value: float) -> float:
        if not self.log:
            return value
        return math.log10(value) if value > 0 else -math.inf

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, from 2 to about ``most``."""
        found = list(self._logarithmic(most) if self.log else self._linear(most))
        return found if len(found) > 1 else list(self._linear(most))

    def _linear(self, most: int) -> Iterator[float]:
        step = round_step(self.high - self.low, most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        yield from (number * step for number in range(first, last + 1))

    def _logarithmic(self, most: int) -> Iterator[float]:
        if self.unit == "B":
            yield from self._powers(2.0, most)
            return
        for within in ((1, 2, 5), (1, 3)):
            found = list(self._decades(within))
            if len(found) <= most:
                yield from found
                return
        yield from self._powers(10.0, most)

    def _decades(self, within: tuple[int, ...]) -> Iterator[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for power in range(first, last + 1):
            yield from (one * 10.0**power for one in within if self.holds(one * 10.0**power))

    def _powers(self, base: float, most: int) -> Iterator[float]:
        first = math.ceil(math.log(self.low, base) - 1e-9)
        last = math.floor(math.log(self.high, base) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / most))
        yield from (base**power for power in range(first, last + 1) if power % every == 0)

    def label(self, value: float) -> str:
        """A value with its unit and the prefix that fits."""
        return shown(value, self.unit)


def axis_of(values: Iterable[float], unit: str, *, log: bool, from_zero: bool = False) -> Axis:
    """An axis that holds all finite values; those above 0 where it is logarithmic.  A linear one
    begins at 0 where that is asked for and nothing lies below."""
    finite = [one for one in values if math.isfinite(one)]
    above = [one for one in finite if one > 0]
    if log and above:
        low, high = math.log10(min(above)), math.log10(max(above))
        room = max((high - low) * _ROOM, 0.0 if high > low else math.log10(2))
        return Axis(10 ** (low - room), 10 ** (high + room), True, unit)
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if from_zero and low >= 0:
        return Axis(0.0, (high or 1.0) * (1 + _ROOM), False, unit)
    room = (high - low) * _ROOM or abs(high) or 1.0
    return Axis(low - room, high + room, False, unit)


def shown(value: float, unit: str) -> str:
    """A quantity, three digits of it, with the prefix that fits.

    >>> shown(1.4e-10, "s/B"), shown(49152, "B"), shown(4096, "")
    ('140 ps/B', '48 KiB', '4,096')
    """
    if not math.isfinite(value):
        return "not known"
    if unit == "B":
        return nbytes(value)
    if not unit or unit in ("%", "x"):
        return _plain(value) + (f" {unit}" if unit else "")
    highest = _NOT_ABOVE.get(unit, math.inf)
    size = abs(value)
    scale, prefix = next(
        ((s, p) for s, p in _PREFIXES if size >= 0.9995 * s and s <= highest), _PREFIXES[-1]
    )
    if not value:
        scale, prefix = 1.0, ""
    return f"{_plain(value / scale)} {prefix}{unit}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
