"""What names stand for, where it is written but not known as a value."""

from __future__ import annotations

import ast

from memlint.analysis.uses import FUNCTIONS, Uses
from memlint.analysis.walking import walk


def written(node: ast.expr, uses: Uses) -> ast.expr:
    """The expression that a name was given once in its scope; otherwise ``node`` itself."""
    if not isinstance(node, ast.Name):
        return node
    bound = _bound(node, uses)
    above = uses.parent(bound[0]) if len(bound) == 1 else None
    return above.value if isinstance(above, ast.Assign) and bound[0] in above.targets else node


def annotation_of(node: ast.Name, uses: Uses) -> str:
    """The annotation of the parameter that a name is, where nothing else is given to it."""
    scope = uses.scope_of(node)
    if not isinstance(scope, FUNCTIONS) or _bound(node, uses):
        return ""
    every = (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
    found = next((one.annotation for one in every if one.arg == node.id), None)
    return "" if found is None else ast.unparse(found)


def _bound(node: ast.Name, uses: Uses) -> list[ast.Name]:
    return [
        one
        for one in walk(uses.scope_of(node))
        if isinstance(one, ast.Name) and one.id == node.id and not isinstance(one.ctx, ast.Load)
    ]
