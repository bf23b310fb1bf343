"""The report of a trace on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memlint.findings import Finding
from memlint.report.evidence_text import long_text


def summary(findings: Sequence[Finding], meta: Mapping[str, Any]) -> str:
    """The findings with what was measured, and what the trace could not see."""
    return "\n".join([*_head(findings, meta), *_tail(meta)])


def _head(findings: Sequence[Finding], meta: Mapping[str, Any]) -> Iterator[str]:
    steps, seen = meta.get("steps", 0), meta.get("operations", 0)
    yield f"memlint trace: {len(findings)} findings in {steps} steps, {seen:,} operations"
    for one in findings:
        evidence: Mapping[str, Any] = one.evidence or {}
        yield ""
        yield f"{one.path}:{one.location.line}:{one.location.column}: {one.code} {one.name}"
        yield f"  {one.message}"
        yield f"  {long_text(evidence)}"
        for place in one.related:
            yield f"  {place.path}:{place.location.line}: {place.message}"
        yield f"  write instead: {one.help}"


def _tail(meta: Mapping[str, Any]) -> Iterator[str]:
    spots, overhead = meta.get("blind_spots", ()), meta.get("overhead")
    if spots or overhead:
        yield ""
    if spots:
        yield "not seen: " + "; ".join(spots)
    if overhead:
        cost, whole = overhead["us_per_operation"], overhead["seconds"]
        yield f"tracing took about {cost:.3g} us an operation, {whole:.2g} s in all"
