"""What a trace has found in files that have changed since."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memlint.findings import Finding
from memlint.source.discover import shown_path
from memlint.source.model import Source
from memlint.source.read import SourceError, read_source
from memlint.tracer.statement_index import StatementIndex, StatementKey


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """A file as it is now."""

    source: Source
    index: StatementIndex


class CurrentFiles:
    """The files that a trace speaks of; ``folder`` is what its paths are relative to."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._known: dict[str, CurrentFile | None] = {}

    def path(self, traced: str) -> str:
        """A traced path as seen from the working directory.  A trace of another machine is taken
        for one of the working directory."""
        there = self._folder / traced
        return shown_path(str(there)) if os.path.exists(there) else shown_path(traced)

    def get(self, path: str) -> CurrentFile | None:
        """A file by its path from the working directory; ``None`` where it cannot be read."""
        if path not in self._known:
            self._known[path] = _read(path)
        return self._known[path]

    def moved(self, finding: Finding) -> Finding | None:
        """A finding of the trace where its statement stands now, ``None`` where that is gone.

        Related places are kept only where nothing has moved."""
        key = traced_statement(finding.evidence or {})
        if key is None:
            return None
        path = self.path(finding.path)
        current = self.get(path)
        if current is None:
            return None
        if current.index.at(finding.location) == key:
            related = tuple(replace(one, path=self.path(one.path)) for one in finding.related)
            return replace(finding, path=path, related=related)
        location = current.index.location_of(key)
        if location is None:
            return None
        return replace(finding, path=path, location=location, related=())


def traced_statement(evidence: Mapping[str, Any]) -> StatementKey | None:
    """The statement that a finding of a trace stands in, as it was then."""
    if "statement" not in evidence:
        return None
    return StatementKey(
        str(evidence["function"]), str(evidence["statement"]), int(evidence.get("number", 0))
    )


def _read(path: str) -> CurrentFile | None:
    try:
        source = read_source(path)
        return CurrentFile(source, StatementIndex(source, ast.parse(source.text)))
    except (OSError, SourceError, SyntaxError, ValueError):
        return None
