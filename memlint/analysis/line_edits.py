"""Edits of whole statements: one that is taken out, a decorator that is put on."""

from __future__ import annotations

import ast

from memlint.analysis.uses import Uses
from memlint.rule import Replacement
from memlint.source.model import Source

BODIES = ("body", "orelse", "finalbody")


def removed(source: Source, statement: ast.stmt, uses: Uses) -> Replacement | None:
    """A statement taken out with its line; ``None`` where it is not alone there, or is all that
    a block holds."""
    parent = uses.parent(statement)
    bodies = [getattr(parent, name, []) for name in BODIES]
    if not any(statement in body and len(body) > 1 for body in bodies if isinstance(body, list)):
        return None
    if statement.end_lineno != statement.lineno or statement.lineno >= len(source.lines):
        return None
    line = source.lines[statement.lineno - 1]
    if line.strip() != source.segment(statement):
        return None
    return Replacement(_span(statement.lineno, 0, statement.lineno + 1, 0), "")


def decorated(function: ast.FunctionDef, decorator: str) -> Replacement:
    """A function with one more decorator, the innermost."""
    indent = " " * function.col_offset
    place = _span(function.lineno, function.col_offset, function.lineno, function.col_offset)
    return Replacement(place, f"@{decorator}\n{indent}")


def _span(line: int, column: int, end_line: int, end_column: int) -> ast.AST:
    return ast.Pass(lineno=line, col_offset=column, end_lineno=end_line, end_col_offset=end_column)
