"""Copies that keep what is overwritten before they are read."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right

from memlint.analysis.changes import Definitions, changes_in
from memlint.analysis.paths import bases_of
from memlint.analysis.uses import Uses
from memlint.analysis.walking import walk

_COMPOUND = (
    ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


class Snapshots:
    """What is written into between a copy and its use, in one program."""

    def __init__(self, tree: ast.Module, uses: Uses) -> None:
        self._uses = uses
        self._definitions = Definitions(tree)
        self._statements: dict[ast.AST, list[ast.stmt]] = {}

    def overwritten(self, copied: ast.expr, reader: ast.AST) -> bool:
        """Whether the memory of ``copied`` may be written into after it was copied, before
        ``reader`` reads the copy; both are in one function and in the same loops."""
        paths = list(bases_of(copied))
        last, until = copied.end_lineno or copied.lineno, getattr(reader, "lineno", 0)
        if not paths or until <= last + 1:
            return False
        scope = self._uses.scope_of(copied)
        between = self._between(scope, last, until)
        changes = changes_in(between, self._definitions)
        if changes.trains or not changes.written:
            return changes.trains
        # Only now is it worth to look for other names of what is written.
        changes = changes_in(between, self._definitions, scope)
        return any(map(changes.write_into, paths))

    def _between(self, scope: ast.AST, last: int, until: int) -> list[ast.stmt]:
        """The statements behind a line that end before another one starts."""
        if scope not in self._statements:
            found = (node for node in walk(scope) if isinstance(node, ast.stmt))
            plain = (node for node in found if not isinstance(node, _COMPOUND))
            self._statements[scope] = sorted(plain, key=_line)
        ordered = self._statements[scope]
        first = bisect_right(ordered, last, key=_line)
        after = bisect_left(ordered, until, key=_line)
        return [node for node in ordered[first:after] if (node.end_lineno or 0) < until]


def _line(node: ast.stmt) -> int:
    return node.lineno
