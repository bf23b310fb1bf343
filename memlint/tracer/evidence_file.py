"""The evidence file: what a trace leaves behind.  Its schema is ``schemas/trace.schema.json``.

Paths in it are relative to ``meta["folder"]``, the working directory in which the trace began.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memlint.findings import Finding
from memlint.report.json_input import finding_of
from memlint.report.json_report import finding_object
from memlint.schemas.validation import schema, validate
from memlint.tracer.sites import SiteCount

VERSION = 1
_SINCE_OTHER_VERSIONS = ("profile", "journeys", "source")


class EvidenceError(ValueError):
    """A file that is no evidence of memlint; the text says what is wrong, and with which file."""


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """The content of an evidence file."""

    meta: Mapping[str, Any]
    findings: tuple[Finding, ...]
    sites: tuple[SiteCount, ...]
    profile: Mapping[str, Any] | None = None
    journeys: tuple[Mapping[str, Any], ...] = ()


def document(
    meta: Mapping[str, Any],
    findings: Sequence[Finding],
    sites: Sequence[SiteCount],
    profile: Mapping[str, Any] | None = None,
    journeys: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The evidence as plain data."""
    return {
        "version": VERSION,
        "meta": dict(meta),
        "findings": [finding_object(one) for one in findings],
        "sites": [asdict(one) for one in sites],
        "profile": profile,
        "journeys": list(journeys),
    }


def evidence_of_document(written: Any) -> EvidenceFile:
    """The content of a document; raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is
    not one of this version."""
    if written["version"] != VERSION:
        raise ValueError(f"evidence of an unknown version: {written['version']!r}")
    return EvidenceFile(
        dict(written["meta"]),
        tuple(finding_of(one) for one in written["findings"]),
        tuple(
            SiteCount(
                str(one["path"]),
                str(one["function"]),
                int(one["line"]),
                str(one["operation"]),
                int(one["count"]),
                one.get("source"),
            )
            for one in written["sites"]
        ),
        written.get("profile"),
        tuple(written.get("journeys", ())),
    )


def read_evidence(path: str | os.PathLike[str]) -> EvidenceFile:
    """Read an evidence file; raises :class:`EvidenceError`."""
    return evidence_in(read_document(path), path)


def read_document(path: str | os.PathLike[str]) -> Any:
    """What an evidence file holds, as plain data; raises :class:`EvidenceError`."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: no JSON: {error}") from error


def evidence_in(written: Any, path: str | os.PathLike[str]) -> EvidenceFile:
    """The content of a document that was read from ``path``; raises :class:`EvidenceError`."""
    try:
        validate(written, schema("trace"), optional=_SINCE_OTHER_VERSIONS)
        return evidence_of_document(written)
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceError(f"{path}: no evidence of a trace: {fault(written, error)}") from error


def fault(written: Any, error: Exception) -> str:
    """What is wrong with a document that cannot be read as evidence."""
    if not isinstance(written, Mapping):
        return "it is no JSON object"
    if "traceEvents" in written:
        return "a profiler wrote it: `memlint analyze` reads such traces"
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def write_evidence(path: str | os.PathLike[str], written: Mapping[str, Any]) -> None:
    """Write a document that :func:`document` has made; raises ``OSError``."""
    text = json.dumps(written, indent=1, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="ascii")
