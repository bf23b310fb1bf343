"""From what rules say of a run to findings, as ``memlint check`` has them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memlint.config import ConfigError, find_config
from memlint.findings import Confidence, Finding, Location
from memlint.linter.finish import finish
from memlint.rule import Draft, Related, Rule
from memlint.source.discover import path_inside
from memlint.source.model import Source
from memlint.source.project import mark_foreign
from memlint.source.read import SourceError, read_source
from memlint.source.statements import statement_of
from memlint.tracer.operands import megabytes
from memlint.tracer.records import Site
from memlint.tracer.sightings import Sighting
from memlint.tracer.statement_index import StatementIndex


@dataclass(frozen=True, slots=True)
class Program:
    """A file of the traced program, read after the run."""

    source: Source
    tree: ast.Module


class Programs:
    """The files that the sites of a run lie in; ``folder`` is where the run began."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Program | None] = {}

    def get(self, path: str) -> Program | None:
        """A file's program; ``None`` where it cannot be read, as for what came from a prompt."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def line(self, path: str, number: int) -> str | None:
        """The text of a line, without the blanks around it; ``None`` where it cannot be read."""
        program = self.get(path)
        if program is None or not 0 < number <= len(program.source.lines):
            return None
        return program.source.lines[number - 1].strip()

    def shown(self, path: str) -> str:
        """A path relative to the folder, with forward slashes."""
        return path_inside(str(self._folder / path), self._folder)

    def inside(self, path: str) -> str:
        """A path relative to the project, as ``memlint check`` has it in fingerprints."""
        return path_inside(str(self._folder / path), self._root((self._folder / path).parent))

    def _root(self, folder: Path) -> Path:
        try:
            config = find_config(folder)
        except ConfigError:  # a report is owed all the same
            return self._folder
        return self._folder if config is None else config.parent

    def _read(self, path: str) -> Program | None:
        try:
            text = _registered(path)
            source = read_source(self._folder / path) if text is None else Source(path, text)
            tree = ast.parse(source.text)
        except (OSError, SourceError, SyntaxError, ValueError):
            return None
        shown = replace(source, path=self.shown(path))
        mark_foreign(tree, shown)
        return Program(shown, tree)


def _registered(path: str) -> str | None:
    """The text of code that came from no file, as notebooks put down that of their cells for
    tracebacks: without a time of change, which files have."""
    match linecache.cache.get(path):
        case (_, None, list() as lines, _):
            return "".join(lines)
    return None


def merged(sightings: Iterable[Sighting]) -> list[Sighting]:
    """One sighting for each rule and place: the one that moved most bytes, with all counts, also
    in its message."""
    kept: dict[tuple[str, Site], Sighting] = {}
    messages: dict[tuple[str, Site], set[str]] = {}
    for one in sightings:
        key = (one.rule.code, one.site)
        messages.setdefault(key, set()).add(one.message)
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
    told = [_with_totals(one, len(messages[key]) > 1) for key, one in kept.items()]
    return sorted(told, key=lambda one: -one.nbytes)


def _with_totals(sighting: Sighting, of_several: bool) -> Sighting:
    """A sighting whose message ends with its totals; of several arrays if it names but one."""
    if not sighting.totals:
        return sighting
    totals = sighting.totals.format(
        count=sighting.count,
        nbytes=megabytes(sighting.nbytes),
        nbytes_a_step=megabytes(sighting.nbytes / max(sighting.steps, 1)),
    )
    others = ", with other arrays at this place" if of_several else ""
    return replace(sighting, message=f"{sighting.message}{totals}{others}", totals="")


_Told = tuple[Draft, Mapping[str, Any]]


def findings_of(
    told: Sequence[tuple[Sighting, Mapping[str, Any]]],
    programs: Programs,
    known: Mapping[str, type[Rule]],
) -> tuple[list[Finding], list[Sighting]]:
    """The findings, and what has no place in any file that can be read."""
    placed: dict[str, list[_Told]] = {}
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
        done = finish(
            program.source,
            program.tree,
            [draft for draft, _ in drafts],
            inside=programs.inside(path),
            min_confidence=Confidence.LOW,
            active=[],
            known=known,
        )
        evidence_at = dict(_by_place(program, drafts))
        findings += (
            replace(one, evidence=evidence_at[one.code, one.location]) for one in done.findings
        )
    return findings, homeless


def _by_place(
    program: Program, drafts: Sequence[_Told]
) -> Iterator[tuple[tuple[str, Location], Mapping[str, Any]]]:
    """The evidence by rule and place, with the statement: it is found by that when lines move."""
    index = StatementIndex(program.source, program.tree)
    # Of drafts at one place the first one counts, as it does for ``finish``.
    for draft, evidence in reversed(drafts):
        key = index.key_of(statement_of(program.tree, draft.node))
        _, location = program.source.place(draft.node)
        statement = (
            {"function": key.function, "statement": key.text, "number": key.number} if key else {}
        )
        yield (draft.rule.code, location), {**evidence, **statement}


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
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        if place == wanted and isinstance(node, ast.expr):
            return node
        if node.lineno == site.line and isinstance(node, ast.stmt) and on_line is None:
            on_line = node
    return on_line if site.line <= len(lines) else None
