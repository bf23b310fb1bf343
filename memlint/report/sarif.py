"""SARIF 2.1.0, the exchange format of static analysis results."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from memlint import __version__
from memlint.findings import (
    Applicability,
    FileError,
    Finding,
    Fix,
    Location,
    Place,
    Report,
    Severity,
)
from memlint.report.evidence_text import is_refuted
from memlint.report.view import View
from memlint.rule import Rule

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
HOME = "https://memlint.readthedocs.io/"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_BASE = "%SRCROOT%"


def render(report: Report, view: View) -> Iterator[str]:
    """The whole log, in ASCII so that no terminal or pipe can spoil it."""
    yield json.dumps(log(report, view.rules().rules.values()), indent=2)
    yield "\n"


def log(report: Report, rules: Iterable[type[Rule]]) -> dict[str, Any]:
    """The log as plain data: one run that describes all rules."""
    descriptors = {rule.code: _rule(rule) for rule in rules}
    for finding in report.findings:
        descriptors.setdefault(finding.code, _bare_rule(finding))
    index = {code: position for position, code in enumerate(descriptors)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "memlint",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "informationUri": HOME,
                        "rules": list(descriptors.values()),
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {
                    _BASE: {"description": {"text": "The working directory of the run."}}
                },
                "invocations": [_invocation(report)],
                "results": [_result(finding, index) for finding in report.findings],
            }
        ],
    }


def _rule(rule: type[Rule]) -> dict[str, Any]:
    page = inspect.getdoc(rule) or rule.name
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary() or rule.name},
        "fullDescription": {"text": rule.summary() or rule.name},
        "help": {"text": page, "markdown": page},
        "helpUri": rule.url(),
        "defaultConfiguration": {"enabled": rule.default_on, "level": _LEVELS[rule.severity]},
        "properties": {"tags": ["performance", "memory", rule.family()]},
    }


def _bare_rule(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": finding.name},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
    }


def _invocation(report: Report) -> dict[str, Any]:
    return {
        "executionSuccessful": not report.errors,
        "toolExecutionNotifications": [_notification(error) for error in report.errors],
    }


def _notification(error: FileError) -> dict[str, Any]:
    message = _in_cell(error.message, error.cell, error.location)
    physical = _physical(error.path, error.cell, error.location)
    return {
        "level": "error",
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}],
    }


def _result(finding: Finding, index: Mapping[str, int]) -> dict[str, Any]:
    text = finding.message if not finding.help else f"{finding.message}\n\n{finding.help}"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _in_cell(text, finding.cell, finding.location)},
        "locations": [_location(finding.path, finding.cell, finding.location)],
        "properties": {"confidence": finding.confidence.value, "name": finding.name},
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {"memlintFingerprint/v1": finding.fingerprint}
    if finding.related:
        result["relatedLocations"] = [
            _related(number, place) for number, place in enumerate(finding.related, 1)
        ]
    if finding.fix is not None and _can_be_applied(finding.fix):
        result["fixes"] = [_fix(finding.fix)]
    if finding.evidence is not None:
        result["properties"]["evidence"] = dict(finding.evidence)
    if finding.measured:
        result["properties"]["measured"] = [dict(one) for one in finding.measured]
    if is_refuted(finding):
        result |= {"kind": "pass", "level": "none"}
    return result


def _in_cell(text: str, cell: int | None, location: Location | None) -> str:
    if cell is None:
        return text
    line = "" if location is None else f", line {location.line}"
    return f"cell {cell}{line}: {text}"


def _location(path: str, cell: int | None, location: Location) -> dict[str, Any]:
    found: dict[str, Any] = {"physicalLocation": _physical(path, cell, location)}
    if cell is not None:
        found["logicalLocations"] = [{"name": f"cell {cell}", "kind": "module"}]
    return found


def _physical(path: str, cell: int | None, location: Location | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(path)}
    # A region counts lines of the file, and those of a notebook are lines of JSON.
    if location is not None and cell is None:
        physical["region"] = _region(location)
    return physical


def _artifact(path: str) -> dict[str, str]:
    uri = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    if path[1:3] == ":/":
        return {"uri": f"file:///{quote(path, safe='/:')}"}
    return {"uri": uri, "uriBaseId": _BASE}


def _region(location: Location) -> dict[str, int]:
    return {
        "startLine": location.line,
        "startColumn": location.column,
        "endLine": location.end_line,
        "endColumn": location.end_column,
    }


def _related(number: int, place: Place) -> dict[str, Any]:
    related = _location(place.path, place.cell, place.location)
    text = _in_cell(place.message, place.cell, place.location)
    return {"id": number, "message": {"text": text}, **related}


def _can_be_applied(fix: Fix) -> bool:
    mechanical = fix.applicability in (Applicability.SAFE, Applicability.UNSAFE)
    return mechanical and bool(fix.edits) and all(edit.cell is None for edit in fix.edits)


def _fix(fix: Fix) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {
            "deletedRegion": _region(edit.location),
            "insertedContent": {"text": edit.content},
        }
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements}
            for path, replacements in changes.items()
        ],
    }
