"""Findings and what they are made of: plain data, shared by every part of memlint.

Lines and columns count from 1; columns count Unicode characters, and the end column is
the one after the last character.  ``path`` is relative to the working directory, with
forward slashes.  ``cell`` is ``None`` outside notebooks and counts from 1 inside them;
lines are then counted within the cell.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Severity(enum.Enum):
    """What kind of harm a finding speaks of."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return _SEVERITY_RANK[self]


_SEVERITY_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class Confidence(enum.Enum):
    """How far the facts behind a finding are proved by the source."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for low, 1 for medium, 2 for high."""
        return _CONFIDENCE_RANK[self]


_CONFIDENCE_RANK = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}


class Applicability(enum.Enum):
    """Whether a fix may be applied mechanically."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"
    NONE = "none"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A half-open range of characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """A second location that a finding depends on, and why."""

    message: str
    path: str
    cell: int | None
    location: Location


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the characters of ``location`` by ``content``."""

    path: str
    cell: int | None
    location: Location
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement that removes the finding."""

    applicability: Applicability
    message: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where code wastes memory or memory traffic, and what to write instead.

    ``evidence`` is what a trace has seen of it, ``measured`` what the bench of its rule has
    measured on this machine: objects of ``check.schema.json``, the most telling first."""

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    path: str
    cell: int | None
    location: Location
    message: str
    help: str
    related: tuple[Place, ...] = ()
    fix: Fix | None = None
    fingerprint: str = ""
    evidence: Mapping[str, Any] | None = None
    url: str = ""
    measured: tuple[Mapping[str, Any], ...] = ()

    @property
    def sort_key(self) -> tuple[str, int, Location, str]:
        """The order in which findings are reported."""
        return (self.path, self.cell or 0, self.location, self.code)


@dataclass(frozen=True, slots=True)
class FileError:
    """A file (or a rule, or a rule pack) that could not be worked through."""

    path: str
    message: str
    cell: int | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of the linter found, sorted; ``findings`` are those that are shown.

    ``suppressed`` and ``baselined`` count findings that were left out on request;
    ``timings`` maps a phase or a rule name to seconds.  ``notes`` are for who asks for
    details: the cache could not be written, for example.
    """

    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    files: int = 0
    suppressed: int = 0
    baselined: int = 0
    cached: int = 0
    seconds: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
