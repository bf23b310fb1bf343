"""The result of a file as plain lists for the cache, and back.

A file's path is left out: it is known from where the entry stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memlint.findings import (
    Applicability,
    Confidence,
    FileError,
    Finding,
    Fix,
    Location,
    Place,
    Severity,
    TextEdit,
)
from memlint.linter.file import FileResult

_CLEAN = FileResult()


def encode_result(result: FileResult) -> list[Any]:
    """What the cache keeps of a result; an empty list for a clean file."""
    if not (result.findings or result.errors or result.suppressed):
        return []
    return [
        [_encode_finding(finding) for finding in result.findings],
        [[e.message, e.cell, _encode_location(e.location)] for e in result.errors],
        result.suppressed,
    ]


def decode_result(kept: Sequence[Any], path: str) -> FileResult:
    """The result that was kept.  Raises ``ValueError``, ``TypeError`` or such if it is damaged."""
    if kept == []:
        return _CLEAN
    findings, errors, suppressed = kept
    return FileResult(
        tuple(_decode_finding(item, path) for item in findings),
        tuple(FileError(path, m, c, _decode_location(at) if at else None) for m, c, at in errors),
        int(suppressed),
    )


def _encode_location(location: Location | None) -> list[int] | None:
    if location is None:
        return None
    return [location.line, location.column, location.end_line, location.end_column]


def _decode_location(kept: Sequence[int]) -> Location:
    line, column, end_line, end_column = map(int, kept)
    return Location(line, column, end_line, end_column)


def _encode_finding(finding: Finding) -> list[Any]:
    fix = finding.fix
    return [
        finding.code,
        finding.name,
        finding.severity.value,
        finding.confidence.value,
        finding.cell,
        _encode_location(finding.location),
        finding.message,
        finding.help,
        [
            [
                p.message,
                p.cell,
                _encode_location(p.location),
                p.path if p.path != finding.path else "",
            ]
            for p in finding.related
        ],
        None
        if fix is None
        else [
            fix.applicability.value,
            fix.message,
            [[e.cell, _encode_location(e.location), e.content] for e in fix.edits],
        ],
        finding.fingerprint,
        finding.url,
    ]


def _decode_finding(kept: Sequence[Any], path: str) -> Finding:
    code, name, severity, confidence, cell, at, message, help, related, fix, mark, url = kept
    return Finding(
        code,
        name,
        Severity(severity),
        Confidence(confidence),
        path,
        cell,
        _decode_location(at),
        message,
        help,
        tuple(Place(m, of or path, c, _decode_location(where)) for m, c, where, of in related),
        None if fix is None else _decode_fix(fix, path),
        mark,
        None,
        url,
    )


def _decode_fix(kept: Sequence[Any], path: str) -> Fix:
    applicability, message, edits = kept
    return Fix(
        Applicability(applicability),
        message,
        tuple(TextEdit(path, c, _decode_location(at), content) for c, at, content in edits),
    )
