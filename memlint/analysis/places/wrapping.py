"""Which functions may wrap a model for several GPUs of one process, as their text tells: a
sieve."""

from __future__ import annotations

import ast

from memlint.analysis.walking import children, nodes_of
from memlint.late_pattern import late_pattern

WRAPPING = frozenset({"DataParallel", "data_parallel"})
_ALIASED = late_pattern(r"\b(?:DataParallel|data_parallel) as \w")
# What only asks whether a model is wrapped.
_ASKING = frozenset({"isinstance", "issubclass", "hasattr"})


def may_wrap(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function does more with ``DataParallel`` than to ask for it."""
    del around
    if _ALIASED.search(source) is not None:
        return True
    return any(map(_is_named, nodes_of(function))) and _names_it(function)


def _is_named(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) in WRAPPING


def _names_it(node: ast.AST) -> bool:
    match node:
        case ast.Name() | ast.Attribute() if _is_named(node):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _ASKING:
            return any(_names_it(one) for one in node.args[:1])
        case ast.Compare() | ast.arg() | ast.AnnAssign(value=None):
            return False
        case ast.ClassDef(bases=bases) if any(map(_names_it, bases)):
            return True
    return any(_names_it(one) for one in children(node))
