"""A session as Markdown, for documents and issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memlint.bench.claims import CLAIMS
from memlint.bench.quantities import amount, interval, ratio
from memlint.bench.results import Outcome, Row, Session
from memlint.bench.standings import standings


def markdown_report(session: Session) -> str:
    """Tables: the machine, the comparisons, the claims, what was not measured."""
    return "\n".join(_lines(session)) + "\n"


def _lines(session: Session) -> Iterator[str]:
    yield from _machine(session)
    rows = [(outcome, row) for outcome in session.outcomes for row in outcome.rows]
    if rows:
        yield ""
        yield "| bench | operands | forms | ratio (interval) | as is | alternative | |"
        yield "|---|---|---|---|---|---|---|"
        for outcome, row in rows:
            yield _table_row(_row(outcome, row))
    answers = list(standings(session.outcomes))
    if answers:
        yield ""
        yield "| claim | here | measured | bench |"
        yield "|---|---|---|---|"
        for answer in answers:
            claim = CLAIMS[answer.claim]
            cells = (claim.text, answer.standing.value, answer.measured, claim.bench)
            yield _table_row(cells)
    skipped = [one for one in session.outcomes if one.skipped or one.failed]
    if skipped:
        yield ""
        yield "| not measured | why |"
        yield "|---|---|"
        for one in skipped:
            yield _table_row((one.name, one.skipped or f"failed: {one.failed}"))


def _machine(session: Session) -> Iterator[str]:
    machine = session.machine
    yield f"- date: {session.date}"
    yield f"- CPU: {machine.cpu}, {machine.cpus} CPUs, {session.plan.threads} threads"
    sizes = ", ".join(f"{name} {size >> 10} KiB" for name, size in machine.caches.items())
    yield f"- caches: {sizes}; lines of {machine.line} bytes"
    yield f"- system: {machine.system}"
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield f"- versions: Python {machine.python}, {versions}, memlint {machine.memlint}"


def _row(outcome: Outcome, row: Row) -> tuple[str, ...]:
    name = " ".join(filter(None, (outcome.code, row.bench)))
    net = "" if row.net_ratio is None else f", {ratio(row.net_ratio)} with its conversion"
    return (
        name,
        row.what,
        f"{row.as_is_form} / {row.alternative_form}",
        f"{ratio(row.ratio)} ({interval(row.low, row.high)}){net}",
        amount(row.as_is, row.unit),
        amount(row.alternative, row.unit),
        row.verdict.value,
    )


def _table_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
