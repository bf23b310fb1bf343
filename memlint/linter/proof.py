"""Whether fixes did what they were for: the findings before and after, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memlint.findings import Finding
from memlint.linter.file import FileResult
from memlint.linter.rewrite import Change, Document, UnfitError, moved


@dataclass(frozen=True, slots=True)
class Tracked:
    """A finding of the file as it is now; ``open`` unless it is known from a baseline."""

    finding: Finding
    open: bool


def prove(
    fixed: Sequence[Finding],
    changes: Mapping[int | None, Sequence[Change]],
    before: Document,
    result_before: FileResult,
    tracked: Sequence[Tracked],
    after: Document,
    result: FileResult,
) -> list[Tracked]:
    """The findings after ``fixed`` have been fixed by ``changes``, each as it was tracked.

    Raises :class:`UnfitError` if the file has errors that it had not, a fixed finding is
    still there, or any other finding is new: to the file, or to its baseline.
    """
    _prove_sound(result_before, result)
    gone = {id(finding) for finding in fixed}
    remaining = [item for item in tracked if id(item.finding) not in gone]
    pairs = _paired(remaining, changes, before, after, result.findings)
    kept: list[Tracked] = []
    for finding, old in pairs:
        if old is None:
            raise UnfitError(_surplus(finding, fixed, changes, before, after))
        if not old.open and old.finding.fingerprint != finding.fingerprint:
            raise UnfitError(
                f"the baseline would no longer cover {finding.code} at line {finding.location.line}"
            )
        kept.append(Tracked(finding, old.open))
    return kept


def _prove_sound(before: FileResult, after: FileResult) -> None:
    known = {error.message for error in before.errors}
    for error in after.errors:
        if error.message not in known:
            line = f" (line {error.location.line})" if error.location is not None else ""
            raise UnfitError(f"its result would fail: {error.message}{line}")
    if after.suppressed > before.suppressed:
        raise UnfitError("it would only suppress a finding")


def _paired(
    remaining: Iterable[Tracked],
    changes: Mapping[int | None, Sequence[Change]],
    before: Document,
    after: Document,
    findings: Sequence[Finding],
) -> list[tuple[Finding, Tracked | None]]:
    """Each finding after the fixes with what it was before.

    It stands where the changes have moved it to.  Where they have rewritten it, it is any
    finding of the same rule that is missing.
    """
    places: dict[tuple[str, int | None, int], list[Tracked]] = defaultdict(list)
    for item in remaining:
        places[_place(item.finding, before, changes)].append(item)
    pairs: list[tuple[Finding, Tracked | None]] = []
    for finding in findings:
        here = places[_place(finding, after, {})]
        pairs.append((finding, here.pop(0) if here else None))
    missing: dict[str, list[Tracked]] = defaultdict(list)
    for (code, _, _), items in places.items():
        missing[code] += items
    return [
        (finding, old or (missing[finding.code].pop(0) if missing[finding.code] else None))
        for finding, old in pairs
    ]


def _place(
    finding: Finding, document: Document, changes: Mapping[int | None, Sequence[Change]]
) -> tuple[str, int | None, int]:
    text = document.text(finding.cell)
    start = text.offset(finding.location.line, finding.location.column)
    return finding.code, finding.cell, moved(start, changes.get(finding.cell, ()))


def _surplus(
    finding: Finding,
    fixed: Iterable[Finding],
    changes: Mapping[int | None, Sequence[Change]],
    before: Document,
    after: Document,
) -> str:
    """What is wrong about a finding that should not be there."""
    here = _place(finding, after, {})
    if any(_place(old, before, changes) == here for old in fixed):
        return "the finding would still be there"
    cell = "" if finding.cell is None else f"cell {finding.cell}, "
    place = f"{cell}line {finding.location.line}"
    return f"it would bring a new finding: {finding.code} {finding.name} at {place}"
