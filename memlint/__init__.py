"""memlint: a linter for memory-inefficient machine-learning code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlint.config import ConfigError as ConfigError
    from memlint.config import Settings as Settings
    from memlint.findings import Applicability as Applicability
    from memlint.findings import Confidence as Confidence
    from memlint.findings import FileError as FileError
    from memlint.findings import Finding as Finding
    from memlint.findings import Fix as Fix
    from memlint.findings import Location as Location
    from memlint.findings import Place as Place
    from memlint.findings import Report as Report
    from memlint.findings import Severity as Severity
    from memlint.findings import TextEdit as TextEdit
    from memlint.linter.run import check as check
    from memlint.rule import Needs as Needs
    from memlint.rule import Option as Option
    from memlint.rule import Rule as Rule
    from memlint.tracer.trace import Trace as Trace
    from memlint.tracer.trace import TraceError as TraceError
    from memlint.tracer.trace import trace as trace

__version__ = "0.1.0"

_HOMES = {
    "Applicability": "memlint.findings",
    "Confidence": "memlint.findings",
    "ConfigError": "memlint.config",
    "FileError": "memlint.findings",
    "Finding": "memlint.findings",
    "Fix": "memlint.findings",
    "Location": "memlint.findings",
    "Needs": "memlint.rule",
    "Option": "memlint.rule",
    "Place": "memlint.findings",
    "Report": "memlint.findings",
    "Rule": "memlint.rule",
    "Settings": "memlint.config",
    "Severity": "memlint.findings",
    "TextEdit": "memlint.findings",
    "Trace": "memlint.tracer.trace",
    "TraceError": "memlint.tracer.trace",
    "check": "memlint.linter.run",
    "trace": "memlint.tracer.trace",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memlint' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_HOMES))
