"""One line per finding."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Report
from memlint.report.evidence_text import is_refuted, short_text, style_of
from memlint.report.measured_text import difference
from memlint.report.view import View, paint, printable, shown_place


def render(report: Report, view: View) -> Iterator[str]:
    """``path:line:column: severity[CODE] name: message``, and in brackets what a trace has seen
    and what was measured."""
    for finding in report.findings:
        place = shown_place(finding.path, finding.cell, finding.location)
        mark = f"{finding.severity.value}[{finding.code}]"
        text = f"{finding.name}: {' '.join(printable(finding.message).split())}"
        if finding.evidence is not None:
            text += f" ({printable(short_text(finding.evidence))})"
        if finding.measured:
            text += f" (measured: {printable(difference(finding.measured[0]))})"
        if is_refuted(finding):
            yield paint(f"{place}: {mark} {text}", "faint", view.color) + "\n"
            continue
        painted = paint(mark, style_of(finding), view.color)
        yield f"{paint(place, 'strong', view.color)}: {painted} {text}\n"
