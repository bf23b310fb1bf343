"""Edits of calls that leave formatting and comments as they are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from memlint.rule import Replacement
from memlint.source.model import Source

if TYPE_CHECKING:
    import libcst


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
    text = ast.get_source_segment(source.text, call)
    if text is None:
        return None
    import libcst

    parsed = libcst.parse_expression(text)
    if not isinstance(parsed, libcst.Call) or _is_bare_generator(parsed):
        return None
    value = libcst.parse_expression(expression)
    argument = libcst.Arg(
        value,
        libcst.Name(name),
        equal=libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace("")),
    )
    changed = _with_argument(parsed, argument)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Replacement(call, libcst.Module([], default_newline=newline).code_for_node(changed))


def followed_by(source: Source, call: ast.Call, suffix: str) -> Replacement | None:
    """``call`` with another call or attribute behind it."""
    text = ast.get_source_segment(source.text, call)
    return None if text is None else Replacement(call, text + suffix)


def _is_bare_generator(call: libcst.Call) -> bool:
    import libcst

    return any(isinstance(a.value, libcst.GeneratorExp) and not a.value.lpar for a in call.args)


def _with_argument(call: libcst.Call, argument: libcst.Arg) -> libcst.Call:
    """``argument`` goes last; it stands on a line of its own where the last one does."""
    import libcst

    if not call.args:
        return call.with_changes(args=[argument])
    *earlier, last = call.args
    lead = call.whitespace_before_args
    if earlier and isinstance(earlier[-1].comma, libcst.Comma):
        lead = earlier[-1].comma.whitespace_after
    trailing = last.comma if isinstance(last.comma, libcst.Comma) else None
    tail = trailing.whitespace_after if trailing is not None else last.whitespace_after_arg
    between, after = _around(lead, tail)
    if trailing is not None:
        argument = argument.with_changes(comma=libcst.Comma(whitespace_after=after))
    else:
        argument = argument.with_changes(whitespace_after_arg=after)
    last = last.with_changes(
        comma=libcst.Comma(whitespace_after=between),
        whitespace_after_arg=libcst.SimpleWhitespace(""),
    )
    return call.with_changes(args=[*earlier, last, argument])


def _around(
    lead: libcst.BaseParenthesizableWhitespace, tail: libcst.BaseParenthesizableWhitespace
) -> tuple[libcst.BaseParenthesizableWhitespace, libcst.BaseParenthesizableWhitespace]:
    """The white space before and after a new last argument, given that around the old one."""
    import libcst

    lines = isinstance(lead, libcst.ParenthesizedWhitespace)
    if not isinstance(tail, libcst.ParenthesizedWhitespace) or not (lines or _has_comment(tail)):
        return libcst.SimpleWhitespace(" "), tail
    # The comment behind the last argument stays behind it.
    indent = lead.last_line if isinstance(lead, libcst.ParenthesizedWhitespace) else tail.last_line
    plain = libcst.TrailingWhitespace()
    return (
        tail.with_changes(last_line=indent),
        tail.with_changes(first_line=plain, empty_lines=[]),
    )


def _has_comment(whitespace: libcst.ParenthesizedWhitespace) -> bool:
    return whitespace.first_line.comment is not None or any(
        line.comment is not None for line in whitespace.empty_lines
    )
