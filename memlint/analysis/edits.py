"""Edits of calls that leave formatting and comments as they are.

They are made on the tokens of the call alone: a syntax tree that keeps all white space
would serve as well, but takes longer to import than most runs last.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence

from memlint.rule import Replacement
from memlint.source.model import Source

_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.ENDMARKER})

# What holds an expression without binding it to its neighbours.
_LOOSE = (
    ast.Assign,
    ast.AnnAssign,
    ast.Return,
    ast.Expr,
    ast.keyword,
    ast.Tuple,
    ast.List,
    ast.Compare,
)


def call_with_keyword(
    source: Source, call: ast.Call, name: str, expression: str
) -> Replacement | None:
    """``call`` with the keyword ``name`` set to ``expression``.

    ``None`` where that cannot be done by looking at the call alone: it spreads ``*`` or
    ``**`` arguments, or its one argument is a bare generator.
    """
    given = next((k for k in call.keywords if k.arg == name), None)
    if given is not None:
        return Replacement(given.value, expression)
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    text = source.segment(call)
    if _is_bare_generator(call):
        return None
    return Replacement(call, _with_last(text, f"{name}={expression}", call))


def followed_by(source: Source, call: ast.Call, suffix: str) -> Replacement:
    """``call`` with another call or attribute behind it."""
    text = source.segment(call)
    return Replacement(call, text + suffix)


def product_for(source: Source, node: ast.expr, parent: ast.AST | None, text: str) -> str:
    """``text``, a product, as it can stand for ``node``: in parentheses where it would bind to
    its neighbours without."""
    if isinstance(parent, _LOOSE) or (isinstance(parent, ast.Call) and parent.func is not node):
        return text
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
        return text
    line = source.lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :]
    before = source.lines[node.lineno - 1].encode()[: node.col_offset]
    enclosed = before.rstrip().endswith(b"(") and line.lstrip().startswith(b")")
    return text if enclosed else f"({text})"


def call_without_keyword(source: Source, call: ast.Call, name: str) -> Replacement | None:
    """``call`` without the keyword ``name`` and the comma before it.

    ``None`` where it is not written in the call, comes first, or has a comment before it.
    """
    text = source.segment(call)
    tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    offset = _Offsets(text)
    depth = 0
    comma: int | None = None
    for index, token in enumerate(tokens):
        if token.string in ("(", "[", "{"):
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
        elif token.string == "," and depth == 1:
            comma = index
        elif depth == 1 and token.string == name and tokens[index + 1].string == "=":
            if comma is None or any(t.type == tokenize.COMMENT for t in tokens[comma:index]):
                return None
            last = _last_of_argument(tokens, index)
            first, end = offset.of(tokens[comma].start), offset.of(tokens[last].end)
            return Replacement(call, text[:first] + text[end:])
    return None


def _last_of_argument(tokens: Sequence[tokenize.TokenInfo], start: int) -> int:
    """The last token of the argument that begins at ``start``."""
    depth, last = 0, start
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.string in ("(", "[", "{"):
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
        if depth < 0 or (depth == 0 and token.string == ","):
            break
        if token.type not in _LAYOUT:
            last = index
    return last


def _is_bare_generator(call: ast.Call) -> bool:
    """``f(x for x in y)``: the parentheses of the call are those of the generator."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.GeneratorExp):
        return False
    only = call.args[0]
    return (only.end_lineno, only.end_col_offset) == (call.end_lineno, call.end_col_offset)


def _with_last(text: str, argument: str, call: ast.Call) -> str:
    """The text of a call with one more argument at its end.

    It stands on a line of its own where the last one does and a comma follows that, and
    behind the comment of the last one, if there is one.
    """
    tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    offset = _Offsets(text)
    close = max(i for i, token in enumerate(tokens) if token.string == ")")
    last = max(i for i in range(close) if tokens[i].type not in _LAYOUT)
    end = offset.of(tokens[last].end)
    if not (call.args or call.keywords):
        return text[:end] + argument + text[end:]
    behind = tokens[last + 1 : close]
    comma = tokens[last].string == ","
    comments = [token for token in behind if token.type == tokenize.COMMENT]
    own_line = comma and bool(behind) and _starts_line(text, tokens[:last], offset)
    if not comments and not own_line:
        added = f" {argument}," if comma else f", {argument}"
        return text[:end] + added + text[end:]
    line_end = offset.of(comments[-1].end) if comments else end
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = _indent_of(text, end)
    first = text[:end] + ("" if comma else ",") + text[end:line_end]
    return first + newline + indent + argument + ("," if comma else "") + text[line_end:]


def _starts_line(text: str, tokens: Sequence[tokenize.TokenInfo], offset: _Offsets) -> bool:
    """Whether the argument that ends with the last of these tokens begins a line."""
    depth = 0
    for token in reversed(tokens):
        if token.string in (")", "]", "}"):
            depth += 1
        elif token.string in ("(", "[", "{"):
            if depth == 0:
                return _blank_until_newline(text, offset.of(token.end))
            depth -= 1
        elif token.string == "," and depth == 0:
            return _blank_until_newline(text, offset.of(token.end))
    return False


def _blank_until_newline(text: str, start: int) -> bool:
    rest = text[start:].partition("\n")
    return bool(rest[1]) and (not rest[0].strip() or rest[0].lstrip().startswith("#"))


def _indent_of(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


class _Offsets:
    """From the rows and columns of tokens to offsets in the text."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def of(self, place: tuple[int, int]) -> int:
        """The offset of a row (from 1) and a column (from 0)."""
        row, column = place
        return self._starts[row - 1] + column
