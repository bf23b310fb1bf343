"""How measured numbers make a claim stand."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.bench.quantities import ratio
from memlint.bench.results import Answer, Row, Standing, Verdict

SLACK = 1.2
"""A number that is claimed is met by one that is off by this factor: it was a round one."""


def within(value: float, low: float, high: float) -> bool:
    """Whether a value lies where it was claimed to be, give or take :data:`SLACK`."""
    return low / SLACK <= value <= high * SLACK


def standing(parts: Iterable[bool]) -> Standing:
    """How a claim of several parts stands.

    >>> standing([True, False]).name
    'PARTLY'
    """
    held = list(parts)
    if all(held):
        return Standing.HOLDS
    return Standing.PARTLY if any(held) else Standing.DOES_NOT_HOLD


def unmeasured(why: str, *claims: str) -> list[Answer]:
    """The same reason for several claims."""
    return [Answer(claim, Standing.UNMEASURED, why) for claim in claims]


def told(row: Row) -> str:
    """What a comparison of times says of its first form."""
    if row.verdict is Verdict.SLOWER:
        return f"{ratio(row.ratio)} times slower"
    if row.verdict is Verdict.FASTER:
        return f"{ratio(1 / row.ratio)} times faster"
    return "not measurably slower or faster"
