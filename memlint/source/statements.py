"""Where in a program a node stands: its innermost statement, and the definitions around it."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.source.model import Source

MODULE = "<module>"
_Position = tuple[int, int]
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
# Strings are kept as they are; comments and blanks do not count.
_TOKEN = late_pattern(
    r"""(?P<kept>[\"]{3}(?:\\.|[^\\])*?[\"]{3}|'{3}(?:\\.|[^\\])*?'{3}
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<comment>\#[^\n]*)
    |(?P<blank>(?:\s|\\\n)+)""",
    re.VERBOSE | re.DOTALL,
)
_LOOSE_BLANK = late_pattern(r"(?<!\w) | (?!\w)")
_LAST_COMMA = late_pattern(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class Statement:
    """The innermost statement around a node; of a compound statement, its header counts.

    ``qualname`` is that of the function or class that the statement lies in or defines, in
    the form of Python's ``co_qualname``.
    """

    node: ast.AST
    start: _Position
    header_end: _Position
    qualname: str

    def text(self, source: Source) -> str:
        """The statement's (or its header's) text, the same however it is laid out."""
        return normalised(_between(source.lines, self.start, self.header_end))


def statement_of(tree: ast.Module, node: ast.AST) -> Statement:
    """The innermost statement that ``node`` is, or stands in."""
    position = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    found: ast.AST | None = None
    qualname, inner = "", ""
    current: ast.AST = tree
    while (child := _child_at(current, position)) is not None:
        found = current = child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            qualname = inner + child.name
            inner = f"{qualname}.<locals>."
        elif isinstance(child, ast.ClassDef):
            qualname = inner + child.name
            inner = f"{qualname}."
        if child is node:
            break
    if found is None:
        found = node
    start = (found.lineno, found.col_offset)  # type: ignore[attr-defined]
    return Statement(found, start, _header_end(found), qualname or MODULE)


def span(node: ast.AST) -> tuple[_Position, _Position]:
    """Where a node starts and ends; a definition starts with its decorators."""
    start = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    decorators = getattr(node, "decorator_list", ())
    if decorators:
        start = (decorators[0].lineno, 0)
    return start, (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def normalised(text: str) -> str:
    """Code without comments and layout, strings untouched; the same in every Python version."""
    parts: list[str] = []
    position = 0
    for match in _TOKEN.finditer(text):
        parts.append(text[position : match.start()])
        if match["kept"] is not None:
            parts.append(f"\0{len(parts)}\0")
        elif match["blank"] is not None:
            parts.append(" ")
        position = match.end()
    parts.append(text[position:])
    strings = [match["kept"] for match in _TOKEN.finditer(text) if match["kept"] is not None]
    code = re.sub(r" +", " ", "".join(parts))
    code = _LOOSE_BLANK.sub("", code.strip())
    code = _LAST_COMMA.sub("", code)
    remaining = iter(strings)
    return re.sub("\0\\d+\0", lambda _: next(remaining), code)


def _child_at(node: ast.AST, position: _Position) -> ast.AST | None:
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        bodies = [c.body for c in block] if name == "cases" else [block]
        for body in bodies:
            index = bisect_right(body, position, key=_start) - 1
            if index >= 0 and position < span(body[index])[1]:
                return body[index]  # type: ignore[no-any-return]
    return None


def _start(node: ast.AST) -> _Position:
    return span(node)[0]


def _header_end(node: ast.AST) -> _Position:
    cases = getattr(node, "cases", None)
    if cases:
        return span(cases[0].pattern)[0]
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        return span(body[0])[0]
    return span(node)[1]


def _between(lines: list[str], start: _Position, end: _Position) -> str:
    (first, first_byte), (last, last_byte) = start, end
    if first == last:
        return _cut(lines[first - 1], first_byte, last_byte)
    whole = lines[first : last - 1]
    return "\n".join(
        [_cut(lines[first - 1], first_byte, None), *whole, _cut(lines[last - 1], 0, last_byte)]
    )


def _cut(line: str, start: int, end: int | None) -> str:
    if line.isascii():
        return line[start:end]
    return line.encode("utf-8")[start:end].decode("utf-8", "replace")
