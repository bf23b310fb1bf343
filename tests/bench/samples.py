"""Rows and points with made-up numbers."""

from __future__ import annotations

from memlint.bench.results import Point, Row, Unit, Verdict
from memlint.measure import LEAST_CLAIM


def row(
    ratio: float,
    *,
    variant: str = "",
    size: int = 0,
    spread: float = 1.02,
    net: float | None = None,
    seconds: float = 1e-3,
    nbytes: int = 0,
    what: str = "operands",
    unit: Unit = Unit.SECONDS,
) -> Row:
    """A comparison whose interval is ``spread`` times wide on either side."""
    low, high = ratio / spread, ratio * spread
    more, less = {
        Unit.SECONDS: (Verdict.SLOWER, Verdict.FASTER),
        Unit.BYTES: (Verdict.MORE, Verdict.LESS),
    }[unit]
    verdict = Verdict.NO_DIFFERENCE
    if low > LEAST_CLAIM:
        verdict = more
    elif high < 1 / LEAST_CLAIM:
        verdict = less
    return Row(
        "some", variant, what, "one", "other", unit, size, "float32", "cpu", 1,
        seconds, seconds / ratio, ratio, low, high, 0.99, 1.01, 18, verdict,
        net_ratio=net, nbytes=nbytes,
    )  # fmt: skip


def noisy(ratio: float = 1.0) -> Row:
    """A comparison that tells nothing."""
    found = row(ratio, spread=4.0 * max(ratio, 1 / ratio))
    assert found.verdict is Verdict.NO_DIFFERENCE
    return found


def point(x: float, y: float) -> Point:
    """Without an interval."""
    return Point(x, y, y, y)
