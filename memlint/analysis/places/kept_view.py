"""Which functions may keep a small view of an array that they make for the moment: a sieve."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.last_name import last_name
from memlint.analysis.parts import SAME, SPLITS
from memlint.analysis.walking import children, nodes_of, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ADDING = frozenset({"append", "appendleft"})
_VIEWED_BY = frozenset(name.rpartition(".")[2] for name in SAME)
# What these give is no array, or is a part of another one itself.
_NO_BASES = frozenset(name.rpartition(".")[2] for name in SPLITS) | {
    "splitext", "partition", "rsplit", "rpartition", "splitlines", "items", "keys", "groups",
    "groupby", "zip", "enumerate", "range", "sorted", "list", "tuple", "dict", "str", "len",
}  # fmt: skip
_KEPT_OPEN = (ast.Subscript, ast.Name, ast.Call, ast.IfExp, ast.Tuple, ast.List, ast.Attribute)


def may_keep_view(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function keeps what may be a small view of an array that it makes."""
    del around, source
    nodes = nodes_of(function)
    bound = {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    views = {one for one in nodes if _is_view(one, bound)}
    if not views:
        return False
    named = {
        name.id
        for one in nodes
        if isinstance(one, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and one.value is not None
        if any(below in views for below in walk(one.value))
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        for name in walk(target)
        if isinstance(name, ast.Name)
    }
    return any(
        below in views or (isinstance(below, ast.Name) and below.id in named)
        for kept in _kept(function)
        if isinstance(kept, _KEPT_OPEN)
        for below in walk(kept)
    )


def _is_view(node: ast.AST, bound: set[str]) -> bool:
    """Whether an expression takes what may be a part of constant size of a local array."""
    match node:
        case ast.Subscript(value=value, slice=key, ctx=ast.Load()):
            return _may_be_small(key) and _may_be_temporary(value, bound)
        case ast.Call(func=ast.Attribute(attr="narrow")):
            return True
    return False


def _may_be_small(key: ast.expr) -> bool:
    match key:
        case ast.Tuple(elts=parts):
            return any(map(_may_be_small, parts))
        case ast.Slice(upper=upper):
            return upper is not None
        case ast.Constant(value=value):
            return type(value) is int
        case ast.UnaryOp(operand=operand):
            return _may_be_small(operand)
        case ast.List() | ast.Compare() | ast.JoinedStr():
            return False
    return True


def _may_be_temporary(value: ast.expr, bound: set[str]) -> bool:
    """Whether an array may have been made in the function, and be no part of another one."""
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWED_BY:
                value = inner
            case ast.Attribute(value=inner, attr=name) if name in _VIEWED_BY:
                value = inner
            case ast.Call(func=func):
                return last_name(func) not in _NO_BASES
            case ast.Name(id=name):
                return name in bound
            case _:
                return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.NamedExpr))


def _kept(function: ast.AST) -> Iterator[ast.expr]:
    """What is appended in a loop, set as an attribute or under a key, or gathered."""
    waiting: list[tuple[ast.AST, bool]] = [(function, False)]
    while waiting:
        node, looped = waiting.pop()
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[kept, *_]) if name in _ADDING:
                if looped:
                    yield kept
            case ast.Call(func=ast.Name(id="setattr"), args=[_, _, kept]):
                yield kept
            case ast.Assign(targets=targets, value=kept) if _are_held(targets):
                yield kept
            case ast.AnnAssign(target=target, value=ast.expr() as kept) if _are_held([target]):
                yield kept
            case ast.ListComp(elt=kept) | ast.DictComp(value=kept):
                yield kept
        inner = looped or isinstance(node, _LOOPS)
        waiting.extend((child, inner) for child in children(node))


def _are_held(targets: list[ast.expr]) -> bool:
    return any(
        isinstance(one, (ast.Attribute, ast.Subscript))
        for target in targets
        for one in ([target] if not isinstance(target, (ast.Tuple, ast.List)) else target.elts)
    )
