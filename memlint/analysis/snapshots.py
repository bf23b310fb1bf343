"""Copies that keep what is overwritten before they are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.changes import Definitions, bases_of, changes_in
from memlint.analysis.uses import Uses

_COMPOUND = (
    ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


def overwritten_between(
    copied: ast.expr, reader: ast.AST, uses: Uses, definitions: Definitions
) -> bool:
    """Whether the memory of ``copied`` may be written into after it was copied, before
    ``reader`` reads the copy; both are in one function and in the same loops."""
    paths = list(bases_of(copied))
    last, until = copied.end_lineno or copied.lineno, getattr(reader, "lineno", 0)
    if not paths or until <= last:
        return False
    scope = uses.scope_of(copied)
    changes = changes_in(_between(scope, last, until), definitions, scope)
    return changes.trains or any(map(changes.write_into, paths))


def _between(scope: ast.AST, last: int, until: int) -> Iterator[ast.AST]:
    """The statements behind a line that end before another one starts."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.stmt) or isinstance(node, _COMPOUND):
            continue
        if last < node.lineno and (node.end_lineno or node.lineno) < until:
            yield node
