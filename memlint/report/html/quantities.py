"""Quantities as a reader sees them, and round numbers for axes."""

from __future__ import annotations

import math

_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def shown_bytes(nbytes: float) -> str:
    """Bytes in a unit of three digits or so."""
    for unit, size in _SIZES:
        if nbytes >= size:
            return f"{_three_digits(nbytes / size)} {unit}"
    return f"{nbytes:.0f} B"


def shown_ms(milliseconds: float) -> str:
    """A time in milliseconds or a unit that fits it better."""
    size = abs(milliseconds)
    if size >= 1e3:
        return f"{_three_digits(milliseconds / 1e3)} s"
    if size >= 1 or size == 0:
        return f"{_three_digits(milliseconds)} ms"
    return f"{_three_digits(milliseconds * 1e3)} µs"


def shown_ratio(ratio: float) -> str:
    """How many times as long."""
    return f"{_three_digits(ratio)}\N{MULTIPLICATION SIGN}"


def shown_share(share: float) -> str:
    """A share as a percentage."""
    return f"{share:.1%}"


def _three_digits(number: float) -> str:
    if number == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(number)))
    return f"{number:,.{min(max(decimals, 0), 3)}f}"


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that parts a span (above 0) into at most so
    many steps."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(one * power for one in (1, 2, 5, 10, 20) if span / (one * power) <= most)


def ticks(span: float, step: float) -> list[float]:
    """0 and the multiples of a step up to a span."""
    return [number * step for number in range(math.floor(span / step + 1e-9) + 1)]
