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
        self._nodes: defaultdict[tuple[str, str], list[ast.stmt]] = defaultdict(list)
        for node in ast.walk(tree):
            # ``except`` and ``case`` have no operations of their own.
            if isinstance(node, ast.stmt):
                one = statement_of(tree, node)
                self._nodes[one.qualname, one.text(source)].append(node)
        for nodes in self._nodes.values():
            nodes.sort(key=lambda node: (node.lineno, node.col_offset))

    def at(self, location: Location) -> StatementKey | None:
        """The innermost statement at a place; ``None`` where there is none any more."""
        lines = self._source.lines
        if location.line > len(lines):
            return None
        before = lines[location.line - 1][: location.column - 1]
        column = len(before.encode("utf-8", "replace"))
        node = ast.Pass(
            lineno=location.line, col_offset=column, end_lineno=location.line, end_col_offset=column
        )
        return self.key_of(statement_of(self._tree, node))

    def key_of(self, statement: Statement) -> StatementKey | None:
        """The key of a statement of this file."""
        text = statement.text(self._source)
        nodes = self._nodes.get((statement.qualname, text), [])
        if statement.node not in nodes:
            return None
        return StatementKey(statement.qualname, text, nodes.index(statement.node))

    def location_of(self, key: StatementKey) -> Location | None:
        """Where a statement stands (of a compound one, its header's first line); ``None`` where
        it is gone.  Of equal statements that have become fewer it is the last one."""
        nodes = self._nodes.get((key.function, key.text), [])
        if not nodes:
            return None
        node = nodes[min(key.number, len(nodes) - 1)]
        _, location = self._source.place(node)
        if getattr(node, "body", None):
            end = len(self._source.lines[node.lineno - 1]) + 1
            return Location(location.line, location.column, location.line, end)
        return location
