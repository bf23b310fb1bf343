"""The findings of a trace, as `memlint report` and `memlint trace --html` show them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memlint.findings import Finding, Place, Report

if TYPE_CHECKING:
    from memlint.source.model import Source
    from memlint.tracer.evidence_file import EvidenceFile


class ShownTrace:
    """The findings of a trace, in the order of their cost, where they stand now."""

    def __init__(self, evidence: EvidenceFile) -> None:
        from memlint.tracer.relocate import CurrentFiles

        self.meta = evidence.meta
        self._files = CurrentFiles(str(evidence.meta.get("folder", ".")))
        self._moved = [(one, self._files.moved(one)) for one in evidence.findings]
        # Of a file that has changed too much no lines are shown: they would be others.
        self._changed = {self._files.path(one.path) for one, now in self._moved if now is None}
        paths = {one.path for one in evidence.sites} | {one.path for one in evidence.findings}
        self.report = Report(tuple(now or one for one, now in self._moved), files=len(paths))

    def as_traced(self) -> tuple[Finding, ...]:
        """The same findings with their paths as in the trace, not as seen from here."""
        return tuple(
            one if now is None else replace(now, path=one.path, related=_kept(one, now))
            for one, now in self._moved
        )

    def source(self, path: str) -> Source | None:
        """A file by its path from the working directory, ``None`` where it cannot be shown."""
        current = None if path in self._changed else self._files.get(path)
        return None if current is None else current.source

    def traced_source(self, path: str) -> Source | None:
        """The same, by the path in the trace."""
        return self.source(self._files.path(path))


def _kept(traced: Finding, now: Finding) -> tuple[Place, ...]:
    return traced.related if now.related else ()
