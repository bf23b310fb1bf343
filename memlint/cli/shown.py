"""The findings of a trace, as `memlint report` and `memlint trace --html` show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.findings import Report

if TYPE_CHECKING:
    from memlint.source.model import Source
    from memlint.tracer.evidence_file import EvidenceFile


class ShownTrace:
    """The findings of a trace, in the order of their cost, where they stand now."""

    def __init__(self, evidence: EvidenceFile) -> None:
        from memlint.tracer.relocate import CurrentFiles

        self.meta = evidence.meta
        self._files = CurrentFiles(str(evidence.meta.get("folder", ".")))
        moved = [(self._files.moved(one), one) for one in evidence.findings]
        # Of a file that has changed too much no lines are shown: they would be others.
        self._changed = {self._files.path(one.path) for now, one in moved if now is None}
        paths = {one.path for one in evidence.sites} | {one.path for one in evidence.findings}
        self.report = Report(tuple(now or one for now, one in moved), files=len(paths))

    def source(self, path: str) -> Source | None:
        """A file by its path from the working directory, ``None`` where it cannot be shown."""
        current = None if path in self._changed else self._files.get(path)
        return None if current is None else current.source
