"""How measured numbers make a claim stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memlint.bench.quantities import ratio
from memlint.bench.results import Answer, Row, Standing, Verdict

TOO_NOISY = "the machine was too busy: forms that are equal differed as much"

_HIDDEN = 1.5

SLACK = 1.2
"""A number that is claimed is met by one that is off by this factor: it was a round one."""


def within(value: float, low: float, high: float) -> bool:
    """Whether a value lies where it was claimed to be, give or take :data:`SLACK`."""
    return low / SLACK <= value <= high * SLACK


def standing(parts: Iterable[bool]) -> Standing:
    """How a claim of several parts stands; one of which none was measured is not judged.

    >>> standing([True, False]).name
    'PARTLY'
    """
    held = list(parts)
    if not held:
        return Standing.UNMEASURED
    if all(held):
        return Standing.HOLDS
    return Standing.PARTLY if any(held) else Standing.DOES_NOT_HOLD


def unmeasured(why: str, *claims: str) -> list[Answer]:
    """Answers that give the same reason for several claims."""
    return [Answer(claim, Standing.UNMEASURED, why) for claim in claims]


def decided(rows: Iterable[Row]) -> list[Row]:
    """Those comparisons that tell something: not those in which noise could hide a difference of
    more than :data:`_HIDDEN` either way."""
    return [
        row
        for row in rows
        if row.verdict is not Verdict.NO_DIFFERENCE
        or (row.high < _HIDDEN and row.low > 1 / _HIDDEN)
    ]


def over(
    rows: Sequence[Row], wholly: Callable[[Row], bool], in_part: Callable[[Row], bool]
) -> Standing:
    """How a claim about several comparisons stands: it holds where all bear it out ``wholly``,
    and in part where one does so ``in_part``.  One that is too noisy neither bears it out nor
    speaks against it."""
    clear = decided(rows)
    if not clear:
        return Standing.UNMEASURED
    if len(clear) == len(rows) and all(map(wholly, clear)):
        return Standing.HOLDS
    if any(map(in_part, clear)):
        return Standing.PARTLY
    return Standing.DOES_NOT_HOLD if len(clear) == len(rows) else Standing.UNMEASURED


def unclear(rows: Sequence[Row]) -> str:
    """How many comparisons were too noisy, in words that end a sentence; empty: none was."""
    count = len(rows) - len(decided(rows))
    return f"; {count} of {len(rows)} are too noisy to tell" if count else ""


def is_slower(row: Row) -> bool:
    """Whether the first form of a comparison is measurably slower."""
    return row.verdict is Verdict.SLOWER


def told(row: Row) -> str:
    """What a comparison of times says of its first form."""
    if not decided([row]):
        return f"{ratio(row.low)} to {ratio(row.high)} times as slow: too noisy to tell"
    if row.verdict is Verdict.SLOWER:
        return f"{ratio(row.ratio)} times slower"
    if row.verdict is Verdict.FASTER:
        return f"{ratio(1 / row.ratio)} times faster"
    return "not measurably slower or faster"
