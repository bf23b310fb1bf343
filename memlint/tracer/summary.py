"""The report of a trace on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memlint.findings import Finding
from memlint.report.evidence_text import counted, told, verdict_of
from memlint.report.view import printable
from memlint.tracer.operands import megabytes

WIDTH = 80
MOST_HOLDERS = 5

Line = Callable[[Finding], "str | None"]
"""Gives the text of the line that a finding stands on."""


def summary(
    findings: Sequence[Finding],
    meta: Mapping[str, Any],
    profile: Mapping[str, Any] | None = None,
    line: Line = lambda finding: None,
) -> str:
    """The findings with what was measured, the profiled step by phases, and what the trace could
    not see; ``profile`` is as in the evidence file."""
    rows = [*_head(meta, len(findings))]
    for one in findings:
        rows += _finding(one, line(one))
    if profile is not None:
        rows += profiled_step(profile)
    return "\n".join([*rows, *_tail(meta)])


def profiled_step(profile: Mapping[str, Any]) -> Iterator[str]:
    """The lines that tell the phases of the profiled step, and what held the peak of memory."""
    yield from _phases(profile)
    yield from _memory(profile)


def _head(meta: Mapping[str, Any], count: int) -> Iterator[str]:
    steps, seen = meta.get("steps", 0), meta.get("operations", 0)
    found, over = _some(count, "finding"), _some(steps, "step")
    yield f"memlint trace: {found} in {over}, {_some(seen, 'operation')}"


def _some(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _finding(one: Finding, line: str | None) -> Iterator[str]:
    evidence: Mapping[str, Any] = one.evidence or {}
    yield ""
    place = f"{one.path}:{one.location.line}:{one.location.column}"
    yield f"{printable(place)}: {one.code} {one.name}"
    if line:
        yield f"  | {_cut(printable(line), WIDTH - 4)}"
    yield from _wrapped(one.message, "  ")
    seen = counted(evidence)
    verdict = verdict_of(evidence)
    yield from _wrapped(f"{verdict}: {'; '.join(seen)}" if seen else verdict, "  ")
    for part in told(evidence)[len(seen) :]:
        yield from _wrapped(part, "    ")
    for other in one.related:
        beside = f"{other.path}:{other.location.line}:{other.location.column}"
        yield from _wrapped(f"{beside}: {other.message}", "  ")
    yield from _wrapped(f"write instead: {one.help}", "  ")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _phases(profile: Mapping[str, Any]) -> Iterator[str]:
    step = profile["step_ms"]
    yield ""
    yield f"one step under the profiler: {step:,.1f} ms"
    yield f"  {'phase':<12}{'operations':>12}{'ms':>12}{'of the step':>14}"
    rest = step
    for row in profile["phases"]:
        rest -= row["ms"]
        yield _row(row["phase"], f"{row['operations']:,}", row["ms"], step)
    yield _row("between", "", max(rest, 0.0), step)


def _row(phase: str, operations: str, ms: float, step: float) -> str:
    share = f"{ms / step:.1%}" if step else ""
    return f"  {phase:<12}{operations:>12}{ms:>12,.1f}{share:>14}"


def _memory(profile: Mapping[str, Any]) -> Iterator[str]:
    for one in profile["memory"]:
        if not one["peak_bytes"]:
            continue
        yield ""
        at = one["peak_us"] / 1e3
        yield f"memory on {one['device']}: at most {megabytes(one['peak_bytes'])}, at {at:,.1f} ms"
        for holder in one["holders"][:MOST_HOLDERS]:
            yield f"  {megabytes(holder['bytes']):>12}  {_held_by(holder)}"


def _held_by(holder: Mapping[str, Any]) -> str:
    site, operation = holder["site"], holder["operation"]
    if site is None:
        return printable(operation) or "from before the step, or of no operation"
    return printable(f"{site['path']}:{site['line']} {operation}")


def _tail(meta: Mapping[str, Any]) -> Iterator[str]:
    spots, overhead = meta.get("blind_spots", ()), meta.get("overhead")
    if spots or overhead:
        yield ""
    if spots:
        yield from _wrapped("not seen: " + "; ".join(spots), "", "  ")
    if overhead:
        cost, whole = overhead["us_per_operation"], overhead["seconds"]
        yield f"tracing took about {cost:.3g} us an operation, {whole:.2g} s in all"


def _wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    """A text within the width; lines of code in it stay as they are."""
    rows: list[str] = []
    for number, row in enumerate(printable(text).split("\n")):
        if number and row.startswith(" "):
            rows.append(indent + row)
            continue
        rows += textwrap.wrap(
            row,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent if hanging is None else hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return rows
