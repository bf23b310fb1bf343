"""Findings with their source, the places they depend on, and what to write instead."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from memlint.findings import Applicability, Confidence, Finding, Place, Report
from memlint.report.evidence_text import is_refuted, long_text, style_of
from memlint.report.excerpt import Gutter, Mark, excerpt
from memlint.report.measured_text import measured_text
from memlint.report.view import View, paint, printable, shown_place
from memlint.source.model import Source


def render(report: Report, view: View) -> Iterator[str]:
    """One block per finding, separated by empty lines."""
    for finding in report.findings:
        yield from _block(finding, view)
        yield "\n"


def _block(finding: Finding, view: View) -> Iterator[str]:
    places = (finding.location, *(place.location for place in finding.related))
    digits = len(str(max(max(place.line, place.end_line) for place in places)))
    gutter = Gutter(digits, view.color)
    yield from _header(finding, view)
    yield gutter.arrow("-->", shown_place(finding.path, finding.cell, finding.location))
    here = [p for p in finding.related if (p.path, p.cell) == (finding.path, finding.cell)]
    main = Mark(finding.location, "^", style_of(finding))
    yield from _source(finding.path, finding.cell, [main, *map(_mark, here)], gutter, view)
    for place in finding.related:
        if place not in here:
            yield gutter.arrow(":::", shown_place(place.path, place.cell, place.location))
            yield from _source(place.path, place.cell, [_mark(place)], gutter, view)
    yield from _notes(finding, gutter, view)


def _header(finding: Finding, view: View) -> Iterator[str]:
    mark = f"{finding.severity.value}[{finding.code}]"
    text = f"{mark} {finding.name}: {printable(finding.message)}"
    first, *others = _wrapped(text, view.width, "  ")
    color, strong = view.color, "faint" if is_refuted(finding) else "strong"
    yield paint(mark, style_of(finding), color) + paint(first[len(mark) :], strong, color)
    yield "\n"
    for row in others:
        yield paint(row, strong, color) + "\n"


def _mark(place: Place) -> Mark:
    return Mark(place.location, "-", "gutter", " ".join(printable(place.message).split()))


def _source(
    path: str, cell: int | None, marks: Sequence[Mark], gutter: Gutter, view: View
) -> Iterator[str]:
    source = view.read(path)
    rows = [] if source is None else list(excerpt(_lines(source, cell), marks, gutter, view.width))
    if rows:
        yield from rows
        return
    for mark in marks[1:]:
        yield gutter.note(f"line {mark.location.line}: {mark.label}")


def _lines(source: Source, cell: int | None) -> Sequence[str]:
    for known in source.cells:
        if known.number == cell:
            return source.lines[known.first_line - 1 : known.first_line - 1 + known.lines]
    return source.lines


_FIX_KINDS = {Applicability.SAFE: "safe", Applicability.UNSAFE: "unsafe"}


def _notes(finding: Finding, gutter: Gutter, view: View) -> Iterator[str]:
    notes = []
    if finding.evidence is not None:
        notes.append(("trace", long_text(finding.evidence)))
    if finding.measured:
        notes.append(("measured", measured_text(finding.measured)))
    if finding.help and not is_refuted(finding):
        notes.append(("help", finding.help))
    if finding.fix is not None:
        kind = _FIX_KINDS.get(finding.fix.applicability)
        notes.append(("fix", finding.fix.message + (f" ({kind})" if kind else "")))
    if finding.confidence is not Confidence.HIGH:
        notes.append(("confidence", finding.confidence.value))
    if finding.url:
        notes.append(("see", finding.url))
    for label, text in notes:
        yield from _note(label, printable(text), gutter, view)


def _note(label: str, text: str, gutter: Gutter, view: View) -> Iterator[str]:
    lead = f"= {label}: "
    indent = " " * len(lead)
    painted = paint("=", "gutter", view.color) + " " + paint(f"{label}:", "strong", view.color)
    rows = _wrapped(lead + text, view.width - gutter.digits - 1, indent)
    yield gutter.note(f"{painted} {rows[0][len(lead) :]}")
    for row in rows[1:]:
        yield gutter.note(row)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Wrap each line of a text; lines that start with a space are code and stay as they are."""
    rows: list[str] = []
    for line in text.split("\n"):
        start = indent if rows else ""
        if rows and line.startswith(" "):
            rows.append(indent + line)
            continue
        rows += textwrap.wrap(
            line,
            max(width, 40),
            initial_indent=start,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return rows
