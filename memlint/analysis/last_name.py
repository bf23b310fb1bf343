"""What an expression is called."""

from __future__ import annotations

import ast


def last_name(node: ast.expr) -> str:
    """The last name of an expression without its calls and subscripts: "loaders" for
    ``self.loaders[phase]``; empty where it has none."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", getattr(node, "attr", ""))
