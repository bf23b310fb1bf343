"""A session as text for people: a line for each comparison, with a bar for its ratio."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

from memlint.bench.claims import CLAIMS
from memlint.bench.quantities import amount, interval, ratio
from memlint.bench.results import Answer, Outcome, Row, Session, Standing, Verdict
from memlint.bench.standings import standings
from memlint.bench.words import facts, forms, not_measured, note_of
from memlint.report.view import paint, printable

_LONGEST = 64.0
_WIDE = 90
_NARROW_BAR = 14
"""As long as the longest of the words that stand for a bar."""
_LEAST_ROOM = 18
_GAP = "  "
_STYLES = {
    Verdict.SLOWER: "warning",
    Verdict.MORE: "warning",
    Verdict.FASTER: "good",
    Verdict.LESS: "good",
    Verdict.NO_DIFFERENCE: "faint",
}
_INSTEAD_OF_BAR = {
    Verdict.FASTER: "faster",
    Verdict.LESS: "takes less",
    Verdict.NO_DIFFERENCE: "not measurable",
}
_STANDING_STYLES = {
    Standing.HOLDS: "good",
    Standing.PARTLY: "warning",
    Standing.DOES_NOT_HOLD: "error",
    Standing.UNMEASURED: "faint",
}


def text_report(session: Session, width: int, color: bool) -> Iterator[str]:
    """Rows of at most ``width`` columns, from 60 on."""
    for name, value in facts(session):
        yield from _wrapped(f"{name}: {value}", width, "", "  ")
    table = _Table.of([row for one in session.outcomes for row in one.rows], width, color)
    headed = False
    for outcome in session.outcomes:
        if outcome.rows or not (outcome.skipped or outcome.failed):
            yield from _outcome(outcome, table, headed)
            headed = headed or bool(outcome.rows)
    answers = list(standings(session.outcomes))
    if answers:
        yield ""
        yield paint("What is claimed", "strong", color)
        for answer in answers:
            yield from _answer(answer, width, color)
    reasons = not_measured(session.outcomes)
    if reasons:
        yield ""
        yield paint("Not measured", "strong", color)
    for reason, names in reasons.items():
        yield from _wrapped(f"{', '.join(names)}: {reason}", width, "  ", "    ")


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns that all comparisons of a report share; ``room`` is for the operands, which have
    a line of their own where it is 0, as the amounts have where it ``splits``."""

    width: int
    color: bool
    room: int
    bar: int
    ratio: int
    splits: bool

    @classmethod
    def of(cls, rows: Sequence[Row], width: int, color: bool) -> _Table:
        bar = 16 if width >= _WIDE else _NARROW_BAR
        ratios = max(len(_HEADS[1]), *(len(_ratio(row)) for row in rows), 0)
        amounts = max(len(_HEADS[2]), *(len(_amounts(row)) for row in rows), 0)
        left = width - 4 - bar - ratios - amounts - 3 * len(_GAP)
        splits = left + len(_GAP) < 0
        longest = max((len(printable(row.what)) for row in rows), default=0)
        room = min(left, max(longest, _LEAST_ROOM)) if left >= _LEAST_ROOM else 0
        return cls(width, color, room, bar, ratios, splits)

    def head(self) -> Iterator[str]:
        """What the columns are."""
        what, *others = _HEADS
        for row in self._lines(what if self.room else "", "", *others):
            yield paint(row, "faint", self.color)

    def rows(self, row: Row) -> Iterator[str]:
        """A comparison: one line where its operands fit their column."""
        what = printable(row.what)
        if len(what) > self.room:
            yield from _wrapped(what, self.width, "    ", "      ")
            what = ""
        said = _INSTEAD_OF_BAR.get(row.verdict) or _bar(row.ratio, self.bar)
        bar = paint(f"{said:<{self.bar}}", _STYLES[row.verdict], self.color)
        yield from self._lines(what, bar, _ratio(row), _amounts(row))
        if row.verdict is Verdict.NO_DIFFERENCE and not row.low <= 1.0 <= row.high:
            control = f"control ({interval(row.control_low, row.control_high)})"
            yield from self._lines("", "", control, "")
        if row.net_ratio is not None and row.conversion is not None:
            converted = f"{ratio(row.net_ratio)}x with a conversion"
            yield from self._lines("", "", converted, amount(row.conversion, row.unit))

    def _lines(self, what: str, bar: str, ratios: str, amounts: str) -> Iterator[str]:
        lead = f"    {what:<{self.room}}{_GAP}" if self.room else "    "
        line = f"{lead}{bar or ' ' * self.bar}{_GAP}{ratios:<{self.ratio}}{_GAP}"
        if self.splits:
            yield line.rstrip()
            yield f"    {' ' * self.bar}{_GAP}{amounts}"
        else:
            yield line + amounts


_HEADS = ("operands", "ratio (interval)", "as is / alternative")


def _ratio(row: Row) -> str:
    return f"{ratio(row.ratio)}x ({interval(row.low, row.high)})"


def _amounts(row: Row) -> str:
    return f"{amount(row.as_is, row.unit)} / {amount(row.alternative, row.unit)}"


def _outcome(outcome: Outcome, table: _Table, headed: bool) -> Iterator[str]:
    width, color = table.width, table.color
    yield ""
    head = " ".join(filter(None, (outcome.code, outcome.name)))
    first, *others = _wrapped(f"{head}: {outcome.title}", width, "", "  ")
    yield paint(first[: len(head)], "strong", color) + first[len(head) :]
    yield from others
    if outcome.rows and not headed:
        yield from table.head()
    compared = ""
    for row in outcome.rows:
        if compared != (compared := forms(row)):
            yield from _wrapped(compared, width, "  ", "    ")
        yield from table.rows(row)
    for plot in outcome.plots:
        points = sum(len(curve.points) for curve in plot.curves)
        yield from _wrapped(
            f"plot, with --html: {plot.title}, {points} points", width, "  ", "    "
        )
    for note in outcome.notes:
        yield from _wrapped(note, width, "  ", "    ")


def _bar(value: float, most: int) -> str:
    """As long as the logarithm of a ratio.

    >>> _bar(64.0, 16) == "█" * 16, _bar(1.0, 16)
    (True, '')
    """
    filled = most * log2(max(1.0, min(value, _LONGEST))) / log2(_LONGEST)
    whole = int(filled)
    return "█" * whole + ("▌" if filled - whole >= 0.5 else "")


def _answer(answer: Answer, width: int, color: bool) -> Iterator[str]:
    yield from _wrapped(CLAIMS[answer.claim].text, width, "  ", "  ")
    standing = answer.standing.value
    first, *others = _wrapped(f"{standing}: {answer.measured}", width, "    ", "      ")
    painted = paint(standing, _STANDING_STYLES[answer.standing], color)
    yield f"    {painted}{first[4 + len(standing) :]}"
    yield from others
    if note := note_of(answer.claim):
        yield from (paint(row, "faint", color) for row in _wrapped(note, width, "    ", "    "))


def _wrapped(text: str, width: int, first: str, later: str) -> list[str]:
    rows = textwrap.wrap(
        printable(text), width, initial_indent=first, subsequent_indent=later,
        break_on_hyphens=False,
    )  # fmt: skip
    return rows or [first]
