"""The output formats by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from memlint.findings import Report
from memlint.report.view import View

FORMATS: Mapping[str, str] = {
    "full": "memlint.report.full",
    "concise": "memlint.report.concise",
    "json": "memlint.report.json_report",
    "sarif": "memlint.report.sarif",
    "github": "memlint.report.github",
}
FOR_PEOPLE = frozenset({"full", "concise"})


def render(name: str, report: Report, view: View) -> Iterator[str]:
    """The report in a format, in pieces."""
    module = importlib.import_module(FORMATS[name])
    pieces: Iterator[str] = module.render(report, view)
    return pieces
