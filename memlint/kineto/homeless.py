"""Findings that stand on no line that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memlint.findings import Confidence, Finding, Location
from memlint.kineto.homes import NO_FILE, Label
from memlint.linter.fingerprint import Fingerprints
from memlint.tracer.records import Site
from memlint.tracer.sightings import Sighting

_NO_LINE = Location(1, 1, 1, 1)


def findings_without_lines(
    told: Iterable[tuple[Sighting, Mapping[str, Any]]], labels: Mapping[Site, Label], trace: str
) -> Iterator[Finding]:
    """Findings of what no file can be read for.

    Where the trace names a function, they stand at its first line; else they stand in the file
    ``trace`` itself, and ``operator`` and ``function`` of their evidence say what they speak of.
    """
    # Ranks write files of their own: it is the operator that they have in common.
    fingerprints = Fingerprints(NO_FILE)
    for sighting, evidence in told:
        rule, site = sighting.rule, sighting.site
        label = labels.get(site)
        if label is None:
            path, location = site.path, Location(site.line, 1, site.line, 1)
            label = Label(site.function, "")
        else:
            path, location = trace, _NO_LINE
        yield Finding(
            code=rule.code,
            name=rule.name,
            severity=sighting.severity,
            confidence=Confidence.HIGH,
            path=path,
            cell=None,
            location=location,
            message=sighting.message,
            help=sighting.help,
            fingerprint=fingerprints.of(label.range, label.operator, rule.code),
            evidence={**evidence, "operator": label.operator, "function": label.range},
            url=rule.url(),
        )
