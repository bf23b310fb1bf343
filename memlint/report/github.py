"""Workflow commands that GitHub Actions turns into annotations."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import FileError, Finding, Location, Report, Severity
from memlint.report.evidence_text import is_refuted, long_text
from memlint.report.measured_text import measured_text
from memlint.report.view import View, printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, view: View) -> Iterator[str]:
    """One command per finding, and one per file that could not be read."""
    for finding in report.findings:
        yield _finding(finding)
    for error in report.errors:
        yield _error(error)


def _finding(finding: Finding) -> str:
    title = f"memlint {finding.code} {finding.name}"
    text = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    if finding.evidence is not None:
        text += f"\n{long_text(finding.evidence)}"
    if finding.measured:
        text += f"\nmeasured {measured_text(finding.measured[:1])}"
    command = "notice" if is_refuted(finding) else _COMMANDS[finding.severity]
    return _command(command, finding.path, finding.cell, finding.location, title, text)


def _error(error: FileError) -> str:
    return _command("error", error.path, error.cell, error.location, "memlint", error.message)


def _command(
    command: str, path: str, cell: int | None, location: Location | None, title: str, text: str
) -> str:
    properties = {"file": path}
    if cell is not None:
        # Lines count within the cell; GitHub would take them for lines of the JSON text.
        at = "" if location is None else f", line {location.line}"
        text = f"cell {cell}{at}: {text}"
    elif location is not None:
        properties["line"] = str(location.line)
        properties["col"] = str(location.column)
        properties["endLine"] = str(location.end_line)
        properties["endColumn"] = str(location.end_column)
    properties["title"] = title
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{command} {listed}::{_data(text)}\n"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
