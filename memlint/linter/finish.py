"""From drafts, which speak of nodes, to findings, which speak of files and lines."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from memlint.findings import Confidence, Finding, Fix, Place, TextEdit
from memlint.late_dataclass import dataclass
from memlint.linter.fingerprint import Fingerprints
from memlint.linter.own_rules import UnusedSuppression
from memlint.rule import Draft, DraftFix, Related, Rule
from memlint.source.model import Source
from memlint.source.project import source_of
from memlint.source.statements import Statement, span, statement_of
from memlint.source.suppress import read_suppressions


@dataclass(frozen=True, slots=True)
class Finished:
    """The findings of one file in order, and how many more were suppressed by comments."""

    findings: tuple[Finding, ...]
    suppressed: int


@dataclass(frozen=True, slots=True)
class _Placed:
    draft: Draft
    statement: Statement


def finish(
    source: Source,
    tree: ast.Module,
    drafts: Iterable[Draft],
    *,
    inside: str,
    min_confidence: Confidence,
    active: Sequence[Rule],
    known: Mapping[str, type[Rule]],
) -> Finished:
    """Weed out the drafts and give what is left a place and a fingerprint.

    ``inside`` is the file's path relative to the project, ``active`` are all rules that ran.
    """
    placed = [
        _Placed(draft, statement_of(tree, draft.node))
        for draft in drafts
        if draft.confidence.rank >= min_confidence.rank
    ]
    placed = _without_repeated(_without_superseded(placed))
    judge = next((rule for rule in active if isinstance(rule, UnusedSuppression)), None)
    if not placed and judge is None:
        return Finished((), 0)
    suppressions = read_suppressions(source.text)
    shown = [p for p in placed if not suppressions.cover(_first_line(p.draft), *_label(p.draft))]
    suppressed = len(placed) - len(shown)
    if judge is not None:
        classes = [type(rule) for rule in active]
        unused = judge.report(source, suppressions, classes, known)
        shown += [_Placed(draft, statement_of(tree, draft.node)) for draft in unused]
    shown.sort(key=lambda p: (span(p.draft.node), p.draft.rule.code))
    marks = _Marks(source, inside)
    findings = [_finding(source, p, marks.of(p)) for p in shown]
    return Finished(tuple(sorted(findings, key=lambda f: f.sort_key)), suppressed)


def _first_line(draft: Draft) -> int:
    return draft.node.lineno  # type: ignore[attr-defined,no-any-return]


def _label(draft: Draft) -> tuple[str, str]:
    return draft.rule.code, draft.rule.name


def _without_superseded(placed: Sequence[_Placed]) -> list[_Placed]:
    stronger: dict[str, list[_Placed]] = {}
    for p in placed:
        for name in p.draft.rule.supersedes:
            stronger.setdefault(name, []).append(p)
    told = {name: _Told(those) for name, those in stronger.items()}
    here = {(name, span(p.draft.node)) for p in placed for name in p.draft.rule.supersedes_here}
    return [
        p
        for p in placed
        if ((by := told.get(p.draft.rule.name)) is None or not by.covers(p))
        and (p.draft.rule.name, span(p.draft.node)) not in here
    ]


class _Told:
    """Where what supersedes a rule is told."""

    def __init__(self, placed: Sequence[_Placed]) -> None:
        self._statements = {id(p.statement.node) for p in placed}
        spans = sorted(span(p.draft.node) for p in placed)
        self._starts = [start for start, _ in spans]
        # Of the spans up to each, where the last ends.
        self._ends = list(accumulate((end for _, end in spans), max))

    def covers(self, p: _Placed) -> bool:
        """Whether it is told in the same statement, or of the same piece of text."""
        if id(p.statement.node) in self._statements:
            return True
        start, end = span(p.draft.node)
        before = bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start


def _without_repeated(placed: Iterable[_Placed]) -> list[_Placed]:
    kept: dict[tuple[object, ...], _Placed] = {}
    for p in placed:
        kept.setdefault((p.draft.rule.code, span(p.draft.node)), p)
    return list(kept.values())


class _Marks:
    """Fingerprints; the text of a statement with many findings is made once."""

    def __init__(self, source: Source, inside: str) -> None:
        self._source = source
        self._fingerprints = Fingerprints(inside)
        self._texts: dict[int, str] = {}

    def of(self, placed: _Placed) -> str:
        statement = placed.statement
        key = id(statement.node)
        if key not in self._texts:
            self._texts[key] = statement.text(self._source)
        code = placed.draft.rule.code
        return self._fingerprints.of(statement.qualname, self._texts[key], code)


def _finding(source: Source, placed: _Placed, fingerprint: str) -> Finding:
    draft = placed.draft
    cell, location = source.place(draft.node)
    return Finding(
        code=draft.rule.code,
        name=draft.rule.name,
        severity=draft.severity,
        confidence=draft.confidence,
        path=source.path,
        cell=cell,
        location=location,
        message=draft.message,
        help=draft.help,
        related=tuple(
            _place(related, source_of(related.node, source)) for related in draft.related
        ),
        fix=None if draft.fix is None else _fix(source, draft.fix),
        fingerprint=fingerprint,
        url=draft.rule.url(),
    )


def _place(related: Related, source: Source) -> Place:
    return Place(related.message, source.path, *source.place(related.node))


def _fix(source: Source, fix: DraftFix) -> Fix:
    edits = tuple(
        TextEdit(source.path, *source.place(replacement.node), replacement.content)
        for replacement in fix.replacements
    )
    return Fix(fix.applicability, fix.message, edits)
