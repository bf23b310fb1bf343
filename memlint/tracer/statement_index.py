"""The statements of a file by function and text, which hold when lines have moved."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

from memlint.findings import Location
from memlint.source.model import Source
from memlint.source.statements import Statement, statement_of


@dataclass(frozen=True, slots=True)
class StatementKey:
    """A statement by the function around it, its text, and its number among those that are equal
    in both, from 0."""

    function: str
    text: str
    number: int


class StatementIndex:
    """The statements of one file."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self._source, self._tree = source, tree
        self._lines: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.ExceptHandler):
                one = statement_of(tree, node)
                self._lines[one.qualname, one.text(source)].append(one.start[0])
        for lines in self._lines.values():
            lines.sort()

    def at(self, location: Location) -> StatementKey | None:
        """The innermost statement at a place; ``None`` where there is none any more."""
        lines = self._source.lines
        if location.line > len(lines):
            return None
        before = lines[location.line - 1][: location.column - 1]
        node = ast.Pass(lineno=location.line, col_offset=len(before.encode("utf-8", "replace")))
        statement = statement_of(self._tree, node)
        return None if statement.node is node else self.key_of(statement)

    def key_of(self, statement: Statement) -> StatementKey:
        """The key of a statement of this file."""
        text = statement.text(self._source)
        lines = self._lines[statement.qualname, text]
        return StatementKey(statement.qualname, text, lines.index(statement.start[0]))

    def line_of(self, key: StatementKey) -> int | None:
        """The line on which a statement starts; ``None`` where it is gone."""
        lines = self._lines.get((key.function, key.text), [])
        return lines[min(key.number, len(lines) - 1)] if lines else None
