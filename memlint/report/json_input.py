"""Findings as the JSON formats write them, read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlint.findings import (
    Applicability,
    Confidence,
    Finding,
    Fix,
    Location,
    Place,
    Severity,
    TextEdit,
)


def finding_of(written: Mapping[str, Any]) -> Finding:
    """A finding from its JSON object.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where the object is none of a finding.
    """
    evidence = written["evidence"]
    fix = written["fix"]
    return Finding(
        code=str(written["code"]),
        name=str(written["name"]),
        severity=Severity(written["severity"]),
        confidence=Confidence(written["confidence"]),
        path=str(written["path"]),
        cell=written["cell"],
        location=_location(written["location"]),
        message=str(written["message"]),
        help=str(written["help"]),
        related=tuple(_place(one) for one in written["related"]),
        fix=None if fix is None else _fix(fix),
        fingerprint=str(written["fingerprint"]),
        evidence=None if evidence is None else dict(evidence),
        url=str(written["url"]),
    )


def _location(written: Mapping[str, Any]) -> Location:
    names = ("line", "column", "end_line", "end_column")
    line, column, end_line, end_column = (int(written[name]) for name in names)
    return Location(line, column, end_line, end_column)


def _place(written: Mapping[str, Any]) -> Place:
    return Place(
        str(written["message"]),
        str(written["path"]),
        written["cell"],
        _location(written["location"]),
    )


def _fix(written: Mapping[str, Any]) -> Fix:
    edits = tuple(
        TextEdit(str(one["path"]), one["cell"], _location(one["location"]), str(one["content"]))
        for one in written["edits"]
    )
    return Fix(Applicability(written["applicability"]), str(written["message"]), edits)
