"""Moving an assignment from the body of a loop to the line in front of it."""

from __future__ import annotations

import ast

from memlint.analysis.invariance import Invariance, Repeated
from memlint.analysis.walking import walk
from memlint.rule import Replacement
from memlint.source.model import Source


def hoisted(source: Source, repeated: Repeated, invariance: Invariance) -> Replacement | None:
    """The loop with the expression's own assignment in front of it.

    ``None`` where that is not sure to be one and the same program but for the time of the
    assignment: it must stand on lines of its own directly in the loop, all of it must be
    invariant, and it must be all that binds its variable, before anything reads it.
    """
    loop, statement = repeated.loop, repeated.statement
    if isinstance(loop, ast.comprehension) or statement is None:
        return None
    if len(loop.body) < 2 or not invariance.is_invariant(statement.value, repeated):
        return None
    match statement.targets:
        case [ast.Name(id=name)]:
            pass
        case _:
            return None
    if not _binds_alone(loop, statement, name) or not _on_own_lines(source, loop, statement):
        return None
    return Replacement(loop, _moved(source, loop, statement))


def _binds_alone(
    loop: ast.For | ast.AsyncFor | ast.While, statement: ast.Assign, name: str
) -> bool:
    head = [loop.test] if isinstance(loop, ast.While) else [loop.target, loop.iter]
    uses = [
        node
        for part in (*head, *loop.body, *loop.orelse)
        for node in walk(part)
        if isinstance(node, ast.Name) and node.id == name
    ]
    stores = [node for node in uses if not isinstance(node.ctx, ast.Load)]
    early = [node for node in uses if node.lineno < statement.lineno]
    return len(stores) == 1 and not early


def _on_own_lines(source: Source, loop: ast.stmt, statement: ast.stmt) -> bool:
    if any(map(source.holds, "\r\f\t")):
        return False
    if any(
        isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in walk(statement)
        if getattr(node, "end_lineno", 0) != getattr(node, "lineno", 0)
    ):
        return False
    lines = source.lines
    first, last = lines[statement.lineno - 1], lines[(statement.end_lineno or 0) - 1]
    before = first.encode()[: statement.col_offset].decode()
    behind = last.encode()[statement.end_col_offset :].decode().strip()
    head = lines[loop.lineno - 1].encode()[: loop.col_offset].decode()
    body_starts = getattr(loop, "body", [statement])[0].lineno
    return (
        not before.strip()
        and (not behind or behind.startswith("#"))
        and not head.strip()
        and body_starts > loop.lineno
        and not any(cell.first_line > loop.lineno and cell.first_line <= statement.lineno
                    for cell in source.cells)
    )  # fmt: skip


def _moved(source: Source, loop: ast.stmt, statement: ast.stmt) -> str:
    lines = source.lines
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    indent = " " * loop.col_offset
    behind = [
        indent + line[statement.col_offset :] if line[: statement.col_offset].isspace() else line
        for line in lines[first:last]
    ]
    own = [lines[first - 1][statement.col_offset :], *behind]
    text = source.segment(loop).split("\n")
    start = first - loop.lineno
    rest = text[:start] + text[start + last - first + 1 :]
    return "\n".join([*own, indent + rest[0], *rest[1:]])
