"""Expressions of a function in the terms of a call that runs it."""

from __future__ import annotations

import ast
import copy

from memlint.analysis.changes import FunctionNode
from memlint.analysis.walking import walk


def as_argument(node: ast.expr, function: FunctionNode, call: ast.Call) -> ast.expr | None:
    """An expression of a function in terms of the call that runs it.

    ``None`` where a parameter that it uses is not given there in a way that can be read.
    """
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    given: list[ast.expr] = list(call.args)
    if names[:1] == ["self"]:
        given.insert(0, call.func.value if isinstance(call.func, ast.Attribute) else call.func)
    if any(isinstance(one, ast.Starred) for one in given):
        return None
    parameters = {*names, *(a.arg for a in spec.kwonlyargs)}
    arguments = dict(zip(names, given, strict=False))
    arguments.update((k.arg, k.value) for k in call.keywords if k.arg is not None)
    used = {one.id for one in walk(node) if isinstance(one, ast.Name)}
    if any(name not in arguments for name in used & parameters):
        return None
    return _Substituted(arguments).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Substituted(ast.NodeTransformer):
    """Names replaced by the expressions that they stand for."""

    def __init__(self, arguments: dict[str, ast.expr]) -> None:
        self._arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The argument that a parameter is."""
        return self._arguments.get(node.id, node)
