"""Findings of the linter beside what a trace has seen of the same program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memlint.findings import Finding, Location
from memlint.rule import Rule, observers
from memlint.tracer.evidence import (
    CONFIRMED,
    INCONCLUSIVE,
    NOT_REACHED,
    OBSERVED,
    REFUTED,
    unseen,
    weight,
)
from memlint.tracer.evidence_file import EvidenceFile
from memlint.tracer.functions import ReachedFunctions
from memlint.tracer.relocate import CurrentFiles
from memlint.tracer.statement_index import StatementKey


@dataclass(frozen=True, slots=True)
class Observers:
    """What the rules say of themselves: the codes of those that observe runs, and the device that
    a rule speaks of."""

    codes: Collection[str]
    devices: Mapping[str, str | None]

    @classmethod
    def of(cls, rules: Iterable[type[Rule]]) -> Observers:
        """What a set of rules says."""
        every = list(rules)
        return cls(
            frozenset(rule.code for rule in every if observers(rule)),
            {rule.code: rule.needs_device for rule in every},
        )


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The linter's findings with their evidence, the findings that the trace alone has, and those
    of the trace whose statement has changed since."""

    findings: tuple[Finding, ...]
    added: tuple[Finding, ...]
    stale: tuple[Finding, ...]


_Place = tuple[str, StatementKey]


@dataclass(slots=True)
class _Static:
    """A finding of the linter, the statements that it may be observed at, and what was seen."""

    finding: Finding
    own: _Place | None
    others: tuple[_Place, ...]
    seen: list[Finding] = field(default_factory=list)


def confirm(findings: Sequence[Finding], evidence: EvidenceFile, rules: Observers) -> Confirmed:
    """Put a trace's evidence to the findings that it covers.

    What the trace has found belongs to the finding of the same rule at the same statement, else
    to the one with the same fingerprint, else to those that name the statement as a related
    place.  Findings of rules that observe nothing keep what they have.
    """
    files = CurrentFiles(str(evidence.meta.get("folder", ".")))
    places = _Places(files)
    known = [places.static(one) for one in findings if one.code in rules.codes and one.cell is None]
    alone: list[Finding] = []
    stale: list[Finding] = []
    for traced in evidence.findings:
        moved = files.moved(traced)
        targets = _targets(traced, moved, known, places)
        for target in targets:
            target.seen.append(traced if moved is None else moved)
        if not targets and moved is None and not has_no_line(traced):
            stale.append(replace(traced, path=files.path(traced.path)))
        elif not targets and moved is not None:
            alone.append(moved)
    reached = ReachedFunctions(evidence, files.path)
    judged = {
        id(one.finding): replace(one.finding, evidence=_evidence(one, reached, evidence, rules))
        for one in known
    }
    return Confirmed(
        tuple(judged.get(id(one), one) for one in findings),
        tuple(one for one in alone if _verdict(one) in (CONFIRMED, OBSERVED)),
        tuple(stale),
    )


class _Places:
    """Findings to the statements that they stand in."""

    def __init__(self, files: CurrentFiles) -> None:
        self._files = files

    def static(self, finding: Finding) -> _Static:
        """A finding with its statements."""
        related = (self.of(one.path, one.location) for one in finding.related)
        return _Static(
            finding,
            self.of(finding.path, finding.location),
            tuple(one for one in related if one is not None),
        )

    def of(self, path: str, location: Location) -> _Place | None:
        """The statement at a place of a file as it is now."""
        current = self._files.get(path)
        key = None if current is None else current.index.at(location)
        return None if key is None else (path, key)


def _targets(
    traced: Finding, moved: Finding | None, known: Sequence[_Static], places: _Places
) -> list[_Static]:
    """The linter's findings that a finding of the trace speaks of."""
    same = [one for one in known if one.finding.code == traced.code]
    here = None if moved is None else places.of(moved.path, moved.location)
    if here is not None and moved is not None:
        own = [one for one in same if one.own == here]
        exact = [one for one in own if _overlap(one.finding.location, moved.location)]
        if own:
            return exact or own
    # Equal statements of a function are numbered in fingerprints, as far as they have findings:
    # with other findings the numbers are others, so that a statement says more where it is known.
    marked = [one for one in same if one.finding.fingerprint == traced.fingerprint]
    if marked and traced.fingerprint and (here is None or marked[0].own is None):
        return marked
    named = [one for one in same if here is not None and here in one.others]
    if named or moved is None:
        return named
    # The linter may stand at what the trace names beside its finding: where doubles come from.
    beside = {places.of(one.path, one.location) for one in moved.related} - {None}
    return [one for one in same if one.own in beside]


def _overlap(one: Location, other: Location) -> bool:
    start, end = (one.line, one.column), (one.end_line, one.end_column)
    other_start, other_end = (other.line, other.column), (other.end_line, other.end_column)
    return start < other_end and other_start < end


def has_no_line(finding: Finding) -> bool:
    """Whether a finding stands in no file: a profiler's trace without Python stacks has told of
    it, by its operator."""
    return "operator" in (finding.evidence or {})


def _verdict(finding: Finding) -> str:
    return str((finding.evidence or {}).get("verdict"))


def _evidence(
    static: _Static, reached: ReachedFunctions, evidence: EvidenceFile, rules: Observers
) -> Mapping[str, Any]:
    device = rules.devices.get(static.finding.code)
    elsewhere = device not in (None, evidence.meta.get("device"))
    if static.seen:
        found = max((one.evidence or {} for one in static.seen), key=weight)
        if elsewhere and found.get("verdict") == REFUTED:
            return {**found, "verdict": INCONCLUSIVE, "note": _not_on(device)}
        return found
    if any(reached.has(path, key.function) for path, key in _statements(static)):
        note = _not_on(device) if elsewhere else "it ran, and nothing was seen that settles it"
        return unseen(INCONCLUSIVE, note)
    if not evidence.meta.get("complete", False):
        return unseen(INCONCLUSIVE, "the trace does not cover the whole run")
    return unseen(NOT_REACHED, "no operation of its function was seen")


def _statements(static: _Static) -> Iterator[_Place]:
    yield from () if static.own is None else (static.own,)
    yield from static.others


def _not_on(device: str | None) -> str:
    return f"the run did not use {device}"
