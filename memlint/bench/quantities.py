"""Numbers as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memlint.bench.results import Unit

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def amount(value: float, unit: Unit) -> str:
    """A value in its unit, three digits of it.

    >>> from memlint.bench.results import Unit
    >>> amount(0.00123, Unit.SECONDS), amount(5632, Unit.BYTES)
    ('1.23 ms', '5.5 KiB')
    """
    return _of_seconds(value) if unit.value == "s" else nbytes(value)


def _of_seconds(value: float) -> str:
    scale, name = next(((s, n) for s, n in _SECONDS if value >= 0.9995 * s), _SECONDS[-1])
    return f"{_three_digits(value / scale)} {name}"


def nbytes(value: float) -> str:
    """Bytes, with a binary prefix.

    >>> nbytes(48 << 10), nbytes(100)
    ('48 KiB', '100 B')
    """
    found = next(((s, n) for s, n in _BYTES if abs(value) >= s), None)
    if found is None:
        return f"{value:.0f} B"
    return f"{value / found[0]:.4g} {found[1]}"


def ratio(value: float) -> str:
    """A ratio, three digits of it.

    >>> ratio(1.0), ratio(8.249), ratio(236.4), ratio(0.0123), ratio(1.5e7)
    ('1.00', '8.25', '236', '0.012', '1.5e+07')
    """
    if value >= 1e7 or 0 < value < 0.095:
        return f"{value:.2g}"
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"


def interval(low: float, high: float) -> str:
    """An interval of ratios.

    >>> interval(8.21, 10.5)
    '8.21-10.5'
    """
    return f"{ratio(low)}-{ratio(high)}"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"
