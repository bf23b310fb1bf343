"""A session as Markdown, for documents and issues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memlint.bench.claims import CLAIMS
from memlint.bench.quantities import amount, interval, ratio
from memlint.bench.results import Outcome, Row, Session
from memlint.bench.standings import standings
from memlint.bench.words import facts, forms, not_measured, note_of
from memlint.report.view import printable

_MARKUP = re.compile(r"([\\|<>*_`\[\]])")


def markdown_report(session: Session) -> str:
    """Tables: the machine, the comparisons, the claims, what was not measured."""
    return "\n".join(_lines(session)) + "\n"


def _lines(session: Session) -> Iterator[str]:
    yield from (f"- {name}: {_cell(value)}" for name, value in facts(session))
    rows = [(outcome, row) for outcome in session.outcomes for row in outcome.rows]
    if rows:
        heads = ("bench", "operands", "forms", "ratio (interval)", "as is", "alternative", "")
        yield from _table(heads, [_row(outcome, row) for outcome, row in rows])
    answers = list(standings(session.outcomes))
    if answers:
        yield from _table(("claim", "here", "measured", "note", "bench"), [
            (
                CLAIMS[answer.claim].text, answer.standing.value, answer.measured,
                note_of(answer.claim), CLAIMS[answer.claim].bench,
            )
            for answer in answers
        ])  # fmt: skip
    reasons = not_measured(session.outcomes)
    if reasons:
        cells = [(", ".join(names), why) for why, names in reasons.items()]
        yield from _table(("not measured", "why"), cells)
    notes = [(one.name, note) for one in session.outcomes for note in one.notes]
    if notes:
        yield ""
        yield from (f"- {_cell(name)}: {_cell(note)}" for name, note in notes)


def _row(outcome: Outcome, row: Row) -> tuple[str, ...]:
    name = " ".join(filter(None, (outcome.code, row.bench)))
    net = "" if row.net_ratio is None else f", {ratio(row.net_ratio)} with its conversion"
    return (
        name,
        row.what,
        forms(row),
        f"{ratio(row.ratio)} ({interval(row.low, row.high)}){net}",
        amount(row.as_is, row.unit),
        amount(row.alternative, row.unit),
        row.verdict.value,
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield _table_row(heads)
    yield "|" + "---|" * len(heads)
    yield from map(_table_row, rows)


def _table_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """One line, in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", printable(" ".join(text.split())))
