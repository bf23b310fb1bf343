"""Walks over syntax trees, faster than the standard library's."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

# What a field of a node holds that is no node of the program: operators and contexts are shared by
# all that use them.
_NO_NODES = frozenset(
    {str, int, float, complex, bytes, bool, type(None), type(...)}.union(
        *(
            base.__subclasses__()
            for base in (ast.operator, ast.expr_context, ast.cmpop, ast.unaryop, ast.boolop)
        )
    )
)


def children(node: ast.AST) -> list[Any]:
    """The nodes directly below a node, in their order; faster than the standard library's."""
    found: list[Any] = []
    for name in node._fields:
        value = getattr(node, name, None)
        kind = value.__class__
        if kind is list:
            found.extend([one for one in value if one.__class__ not in _NO_NODES])  # type: ignore[union-attr]
        elif kind not in _NO_NODES:
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes below it, those further up first."""
    nodes: list[ast.AST] = [node]
    for one in nodes:
        nodes.extend(children(one))
    return nodes


@lru_cache(maxsize=512)
def nodes_of(node: ast.AST) -> list[ast.AST]:
    """:func:`walk`, for a function that many ask about: the list is theirs to read only.
    :func:`forget_nodes` lets go of it."""
    return walk(node)


def forget_nodes() -> None:
    """Forget what :func:`nodes_of` keeps: a program is done with."""
    nodes_of.cache_clear()


def as_module(node: ast.AST) -> ast.Module:
    """A function as the only statement of a module; a module as it is."""
    return node if isinstance(node, ast.Module) else ast.Module([node], [])  # type: ignore[list-item]
