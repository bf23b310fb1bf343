"""One line per finding."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Report
from memlint.report.view import View, paint, printable, shown_place


def render(report: Report, view: View) -> Iterator[str]:
    """``path:line:column: severity[CODE] name: message``."""
    for finding in report.findings:
        place = shown_place(finding.path, finding.cell, finding.location)
        mark = paint(
            f"{finding.severity.value}[{finding.code}]", finding.severity.value, view.color
        )
        message = " ".join(printable(finding.message).split())
        yield f"{paint(place, 'strong', view.color)}: {mark} {finding.name}: {message}\n"
