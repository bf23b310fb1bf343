"""Places within an expression that are no nodes of the tree."""

from __future__ import annotations

import ast


def method_name(call: ast.Call) -> ast.Name | None:
    """The name of the method that is called, without its receiver, which may stand lines above."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return None
    line, end = function.end_lineno or call.lineno, function.end_col_offset or 0
    return ast.Name(
        function.attr,
        lineno=line,
        col_offset=end - len(function.attr.encode()),
        end_lineno=line,
        end_col_offset=end,
    )


def from_method(call: ast.Call) -> ast.AST:
    """The call from the name of its method on; the call where it is no method."""
    place = method_name(call)
    if place is None or place.lineno == call.lineno:
        return call
    place.end_lineno, place.end_col_offset = call.end_lineno, call.end_col_offset
    return place
