"""The JSON document; its schema is ``memlint/schemas/check.schema.json``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from memlint.findings import FileError, Finding, Fix, Location, Place, Report, Severity, TextEdit
from memlint.report.view import View

FORMAT_VERSION = 1


def render(report: Report, view: View) -> Iterator[str]:
    """The whole document, indented, in ASCII so that no terminal or pipe can spoil it."""
    yield json.dumps(document(report), indent=2)
    yield "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "version": FORMAT_VERSION,
        "findings": [
            {**finding_object(finding), "measured": list(map(dict, finding.measured)) or None}
            for finding in report.findings
        ],
        "errors": [_error(error) for error in report.errors],
        "summary": _summary(report),
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as plain data, in the form that the evidence file shares."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "path": finding.path,
        "cell": finding.cell,
        "location": _location(finding.location),
        "message": finding.message,
        "help": finding.help,
        "related": [_place(place) for place in finding.related],
        "fix": None if finding.fix is None else _fix(finding.fix),
        "fingerprint": finding.fingerprint,
        "evidence": None if finding.evidence is None else dict(finding.evidence),
        "url": finding.url,
    }


def _location(location: Location) -> dict[str, int]:
    return {
        "line": location.line,
        "column": location.column,
        "end_line": location.end_line,
        "end_column": location.end_column,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "message": place.message,
        "path": place.path,
        "cell": place.cell,
        "location": _location(place.location),
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: TextEdit) -> dict[str, Any]:
    return {
        "path": edit.path,
        "cell": edit.cell,
        "location": _location(edit.location),
        "content": edit.content,
    }


def _error(error: FileError) -> dict[str, Any]:
    return {
        "path": error.path,
        "cell": error.cell,
        "location": None if error.location is None else _location(error.location),
        "message": error.message,
    }


def _summary(report: Report) -> dict[str, Any]:
    """Counts only: a time or a cache hit would make two equal runs differ."""
    by_severity = Counter(finding.severity for finding in report.findings)
    by_rule = Counter(finding.code for finding in report.findings)
    return {
        "files": report.files,
        "findings": len(report.findings),
        "errors": len(report.errors),
        "suppressed": report.suppressed,
        "baselined": report.baselined,
        "by_severity": {severity.value: by_severity[severity] for severity in Severity},
        "by_rule": dict(sorted(by_rule.items())),
    }
