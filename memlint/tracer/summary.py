"""The report of a trace on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memlint.findings import Finding


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
        yield f"  {_verdict(evidence)}"
        for place in one.related:
            yield f"  {place.path}:{place.location.line}: {place.message}"
        yield f"  write instead: {one.help}"


def _verdict(evidence: Mapping[str, Any]) -> str:
    count, steps = evidence.get("count", 0), max(evidence.get("steps", 0), 1)
    often = f"{count / steps:g} times a step"
    if evidence.get("ratio") is None:
        return f"{evidence.get('verdict', 'observed')}: {often}"
    text = (
        f"{evidence['verdict']}: {often}; as it is {evidence['as_is_ms']:.3g} ms, dense "
        f"{evidence['alternative_ms']:.3g} ms, making it dense {evidence['conversion_ms']:.3g} ms "
        f"for {evidence['uses']:g} uses; {evidence['ratio']:.2f} times "
        f"[{evidence['ratio_low']:.2f}, {evidence['ratio_high']:.2f}], "
        f"{evidence['net_ratio']:.2f} times with the copy charged"
    )
    if evidence["verdict"] == "confirmed":
        text += f"; {evidence['ms_per_step']:.3g} ms a step"
    else:
        text += "; leave it"
    if evidence["numerics"] == "different":
        text += "; the two give different numbers: this is a matter of correctness"
    return text


def _tail(meta: Mapping[str, Any]) -> Iterator[str]:
    spots = meta.get("blind_spots", ())
    if spots:
        yield ""
        yield "not seen: " + "; ".join(spots)
