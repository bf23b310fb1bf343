"""Numbers as people read them."""

from __future__ import annotations

from memlint.bench.results import Unit

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def amount(value: float, unit: Unit) -> str:
    """A value in its unit, three digits of it.

    >>> amount(0.00123, Unit.SECONDS), amount(5632, Unit.BYTES)
    ('1.23 ms', '5.5 KiB')
    """
    return _of_seconds(value) if unit is Unit.SECONDS else _of_bytes(value)


def _of_seconds(value: float) -> str:
    scale, name = next(((s, n) for s, n in _SECONDS if value >= s), _SECONDS[-1])
    return f"{value / scale:.3g} {name}"


def _of_bytes(value: float) -> str:
    found = next(((s, n) for s, n in _BYTES if abs(value) >= s), None)
    if found is None:
        return f"{value:.0f} B"
    return f"{value / found[0]:.4g} {found[1]}"


def ratio(value: float) -> str:
    """A ratio, three digits of it.

    >>> ratio(1.0), ratio(8.249), ratio(236.4)
    ('1.00', '8.25', '236')
    """
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def interval(low: float, high: float) -> str:
    """An interval of ratios."""
    return f"{ratio(low)}-{ratio(high)}"
