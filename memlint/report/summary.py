"""The closing line of a report, counts by rule, and time by phase and rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memlint.findings import Applicability, Report, Severity
from memlint.report.evidence_text import is_refuted
from memlint.report.view import View, paint


def closing_line(report: Report, view: View) -> str:
    """How many findings there are, of which severity, in how many files."""
    files = _count(report.files, "file")
    counted = [finding for finding in report.findings if not is_refuted(finding)]
    if not counted:
        text = "No findings" if report.errors else paint("No findings", "good", view.color)
        return f"{text} in {files}{_left_out(report)}.\n"
    by_severity = Counter(finding.severity for finding in counted)
    kinds = ", ".join(
        paint(_count(by_severity[severity], _NOUNS[severity]), severity.value, view.color)
        for severity in sorted(by_severity, key=lambda s: -s.rank)
    )
    total = _count(len(counted), "finding")
    return f"{total} ({kinds}) in {files}{_left_out(report)}.\n"


_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}


def _count(number: int, noun: str) -> str:
    plural = "" if number == 1 or noun == "info" else "s"
    return f"{number} {noun}{plural}"


def fixable_line(report: Report) -> str:
    """How many of the findings have a fix, and what applies it; empty where none has."""
    kinds = Counter(f.fix.applicability for f in report.findings if f.fix is not None)
    safe, unsafe = kinds[Applicability.SAFE], kinds[Applicability.UNSAFE]
    if not safe:
        return f"{unsafe} fixable with --fix --unsafe-fixes.\n" if unsafe else ""
    more = f", {unsafe} more with --unsafe-fixes" if unsafe else ""
    return f"{safe} fixable with --fix{more}.\n"


def _left_out(report: Report) -> str:
    parts = []
    if refuted := sum(map(is_refuted, report.findings)):
        parts.append(f"{refuted} refuted")
    if report.suppressed:
        parts.append(f"{report.suppressed} suppressed")
    if report.baselined:
        parts.append(f"{report.baselined} in the baseline")
    if report.errors:
        parts.append(_count(len(report.errors), "problem"))
    return f"; {', '.join(parts)}" if parts else ""


def statistics(report: Report, view: View) -> Iterator[str]:
    """One line per rule, the most frequent first."""
    counts = Counter((finding.code, finding.name) for finding in report.findings)
    if not counts:
        return
    digits = len(str(max(counts.values())))
    for (code, name), count in sorted(counts.items(), key=lambda i: (-i[1], i[0])):
        yield f"{count:>{digits}}  {paint(code, 'strong', view.color)}  {name}\n"


def timings(report: Report) -> Iterator[str]:
    """Seconds by phase or rule, the slowest first."""
    yield f"{report.seconds:9.3f} s  in all, {_count(report.files, 'file')}"
    yield f" ({report.cached} from the cache)\n"
    for name, seconds in sorted(report.timings.items(), key=lambda item: (-item[1], item[0])):
        yield f"{seconds:9.3f} s  {name}\n"
