"""From what rules say of a run to findings, as ``memlint check`` has them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memlint.findings import Confidence, Finding
from memlint.linter.finish import finish
from memlint.rule import Draft, Related, Rule
from memlint.source.discover import shown_path
from memlint.source.model import Source
from memlint.source.project import mark_foreign
from memlint.source.read import SourceError, read_source
from memlint.tracer.records import Site
from memlint.tracer.sightings import Sighting


@dataclass(frozen=True, slots=True)
class Program:
    """A file of the traced program, read after the run."""

    source: Source
    tree: ast.Module


class Programs:
    """The files that the sites of a run lie in."""

    def __init__(self) -> None:
        self._known: dict[str, Program | None] = {}

    def get(self, path: str) -> Program | None:
        """A file's program; ``None`` where it cannot be read, as for what came from a prompt."""
        if path not in self._known:
            self._known[path] = _read(path)
        return self._known[path]


def _read(path: str) -> Program | None:
    try:
        source = read_source(path)
        tree = ast.parse(source.text)
    except (OSError, SourceError, SyntaxError, ValueError):
        return None
    shown = replace(source, path=shown_path(path))
    mark_foreign(tree, shown)
    return Program(shown, tree)


def merged(sightings: Iterable[Sighting]) -> list[Sighting]:
    """One sighting for each rule and place: the one that moved most bytes, with all counts."""
    kept: dict[tuple[str, Site], Sighting] = {}
    for one in sightings:
        key = (one.rule.code, one.site)
        other = kept.get(key)
        if other is None:
            kept[key] = one
            continue
        main = one if one.nbytes > other.nbytes else other
        kept[key] = replace(
            main,
            count=one.count + other.count,
            nbytes=one.nbytes + other.nbytes,
            steps=max(one.steps, other.steps),
        )
    return sorted(kept.values(), key=lambda one: -one.nbytes)


def findings_of(
    told: Sequence[tuple[Sighting, Mapping[str, Any]]],
    programs: Programs,
    known: Mapping[str, type[Rule]],
    root: Path,
) -> tuple[list[Finding], list[Sighting]]:
    """The findings, and what has no place in any file that can be read."""
    placed: dict[str, list[tuple[Draft, Mapping[str, Any]]]] = {}
    homeless: list[Sighting] = []
    for sighting, evidence in told:
        draft = _draft(sighting, programs)
        if draft is None:
            homeless.append(sighting)
        else:
            placed.setdefault(sighting.site.path, []).append((draft, evidence))
    findings: list[Finding] = []
    for path, drafts in placed.items():
        program = programs.get(path)
        assert program is not None
        by_place = {(d.rule.code, d.message): evidence for d, evidence in drafts}
        done = finish(
            program.source,
            program.tree,
            [draft for draft, _ in drafts],
            inside=_inside(path, root),
            min_confidence=Confidence.LOW,
            active=[],
            known=known,
        )
        findings += (
            replace(one, evidence=by_place[one.code, one.message]) for one in done.findings
        )
    return findings, homeless


def _inside(path: str, root: Path) -> str:
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return Path(path).as_posix()


def _draft(sighting: Sighting, programs: Programs) -> Draft | None:
    node = _node_at(sighting.site, programs)
    if node is None:
        return None
    related = [
        Related(other, message)
        for site, message in sighting.related
        if (other := _node_at(site, programs)) is not None
    ]
    return Draft(
        sighting.rule,
        node,
        sighting.message,
        sighting.help,
        sighting.severity,
        Confidence.HIGH,
        tuple(related),
    )


def _node_at(site: Site, programs: Programs) -> ast.AST | None:
    """The expression at a site, or the first statement on its line."""
    program = programs.get(site.path)
    if program is None:
        return None
    wanted = (site.line, site.column - 1, site.end_line, site.end_column - 1)
    on_line: ast.AST | None = None
    lines = program.source.lines
    for node in ast.walk(program.tree):
        if not isinstance(node, (ast.expr, ast.stmt)):
            continue
        # Both count columns in bytes of UTF-8.
        if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == wanted:
            if isinstance(node, ast.expr):
                return node
        if node.lineno == site.line and isinstance(node, ast.stmt) and on_line is None:
            on_line = node
    return on_line if site.line <= len(lines) else None
