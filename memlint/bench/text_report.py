"""A session as text for people: a line for each comparison, with a bar for its ratio."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from math import log2

from memlint.bench.claims import CLAIMS
from memlint.bench.quantities import amount, interval, ratio
from memlint.bench.results import Answer, Outcome, Row, Session, Standing, Verdict
from memlint.bench.standings import standings
from memlint.report.view import paint, printable

_BAR = 16
_LONGEST = 64.0
_STYLES = {
    Verdict.SLOWER: "warning",
    Verdict.MORE: "warning",
    Verdict.FASTER: "good",
    Verdict.LESS: "good",
    Verdict.NO_DIFFERENCE: "faint",
}
_STANDING_STYLES = {
    Standing.HOLDS: "good",
    Standing.PARTLY: "warning",
    Standing.DOES_NOT_HOLD: "error",
    Standing.UNMEASURED: "faint",
}


def text_report(session: Session, width: int, color: bool) -> Iterator[str]:
    """Rows of at most about ``width`` columns."""
    machine = session.machine
    caches = ", ".join(f"{name} {size >> 10} KiB" for name, size in machine.caches.items())
    yield f"{machine.cpu}, {machine.cpus} CPUs; {caches}"
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield f"Python {machine.python}, {versions}; {session.plan.threads} threads; {session.date}"
    for outcome in session.outcomes:
        if not outcome.skipped or outcome.rows:
            yield from _outcome(outcome, width, color)
    answers = list(standings(session.outcomes))
    if answers:
        yield ""
        yield paint("What is claimed", "strong", color)
        for answer in answers:
            yield from _answer(answer, width, color)
    yield from _skipped(session.outcomes, width, color)


def _outcome(outcome: Outcome, width: int, color: bool) -> Iterator[str]:
    yield ""
    head = " ".join(filter(None, (outcome.code, outcome.name)))
    yield f"{paint(head, 'strong', color)}  {outcome.title}"
    forms = ""
    for row in outcome.rows:
        if forms != (forms := f"{row.as_is_form} against {row.alternative_form}"):
            yield from textwrap.wrap(forms, width, initial_indent="  ", subsequent_indent="    ")
        yield _row(row, color)
    for plot in outcome.plots:
        yield f"  {plot.title}: {sum(len(curve.points) for curve in plot.curves)} points (--html)"
    if outcome.failed:
        yield f"  {paint('failed', 'error', color)}: {printable(outcome.failed)}"
    for note in outcome.notes:
        yield from textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="  ")


def _row(row: Row, color: bool) -> str:
    amounts = f"{amount(row.as_is, row.unit)} / {amount(row.alternative, row.unit)}"
    times = f"{ratio(row.ratio)}x ({interval(row.low, row.high)})"
    said = "" if row.verdict in (Verdict.SLOWER, Verdict.MORE) else f"  {row.verdict.value}"
    net = "" if row.net_ratio is None else f"  {ratio(row.net_ratio)}x with its conversion"
    bar = paint(f"{_bar(row.ratio):<{_BAR}}", _STYLES[row.verdict], color)
    return f"    {row.what:<34} {bar} {times:<22} {amounts}{net}{said}"


def _bar(value: float) -> str:
    """As long as the logarithm of a ratio; one that is below 1 has none.

    >>> _bar(64.0) == "█" * 16, _bar(1.0)
    (True, '')
    """
    filled = _BAR * log2(max(1.0, min(value, _LONGEST))) / log2(_LONGEST)
    whole = int(filled)
    return "█" * whole + ("▌" if filled - whole >= 0.5 else "")


def _answer(answer: Answer, width: int, color: bool) -> Iterator[str]:
    claim = CLAIMS[answer.claim]
    yield from textwrap.wrap(claim.text, width, initial_indent="  ", subsequent_indent="  ")
    standing = paint(answer.standing.value, _STANDING_STYLES[answer.standing], color)
    rest = textwrap.wrap(f"{answer.standing.value}: {answer.measured}", width - 4)
    yield f"    {standing}{rest[0][len(answer.standing.value) :]}"
    for row in rest[1:]:
        yield f"    {row}"


def _skipped(outcomes: Sequence[Outcome], width: int, color: bool) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.skipped:
            reasons.setdefault(outcome.skipped, []).append(outcome.name)
    if reasons:
        yield ""
        yield paint("Not measured", "strong", color)
    for reason, names in reasons.items():
        text = f"{', '.join(names)}: {reason}"
        yield from textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")
