"""Which functions may walk across the rows of an array, by their syntax alone: a sieve."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from memlint.analysis.changes import called_name
from memlint.analysis.looped_text import called_in_loops
from memlint.analysis.paths import names_in
from memlint.analysis.surroundings import COMPREHENSIONS, LOOPS
from memlint.analysis.walking import children, kinds_in, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TURNED = frozenset({"T", "mT"})
# Methods that take one position of an axis, or all of them.
_TAKING = frozenset({"select", "narrow", "take", "unbind"})
# What makes arrays whose neighbours do not lie along the last axis.
_TURNING = (".T", "transpose", "swapaxes", "moveaxis", "order=", "asfortran", "::1, :")
_SEVERAL = frozenset({"ndindex", "pndindex"})


def may_walk_columns(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may take columns one after the other, or walk a matrix in a nest of
    loops in code that Numba compiles."""
    kinds = kinds_in(function)
    if not any(kinds[kind] for kind in (*LOOPS, *COMPREHENSIONS)):
        return False
    compiled = "numba" in source
    # What stands in no loop is asked as well, which costs less than to know.
    if not compiled and not _may_take_columns(kinds):
        return False
    name = getattr(function, "name", "")
    helper = compiled and bool(name) and called_in_loops(source, name)
    turned = compiled and any(word in source for word in _TURNING)
    for node, loops in _with_loops(function, ()):
        if isinstance(node, ast.Subscript):
            if loops and _takes_column(node, loops):
                return True
            deep = compiled and _depth(loops) + helper >= 2
            if deep and (turned or _is_element(node) or _runs_over_places(loops)):
                return True
        elif loops and _gives_columns(node):
            return True
    return False


def _may_take_columns(kinds: Mapping[type[ast.AST], list[Any]]) -> bool:
    return (
        any(_is_column(one) for one in kinds[ast.Subscript])
        or any(_takes_second_axis(one) for one in kinds[ast.Call])
        or any(one.attr in _TURNED for one in kinds[ast.Attribute])
    )


def _is_column(node: ast.Subscript) -> bool:
    """``a[:, j]``, ``a[..., j]``, ``a[j, :]``"""
    if not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2:
        return False
    first, second = node.slice.elts
    return (_is_whole(first) or _is_whole(second)) and bool(
        names_in(second if _is_whole(first) else first)
    )


def _takes_column(node: ast.Subscript, loops: tuple[ast.AST, ...]) -> bool:
    """``a[:, j]``, ``a[..., j]``, ``a[j, :]`` with a ``j`` that a loop counts."""
    if not _is_column(node) or not isinstance(node.slice, ast.Tuple):
        return False
    first, second = node.slice.elts
    names = names_in(second if _is_whole(first) else first)
    return any(not names.isdisjoint(_counted_in(loop)) for loop in loops)


def _counted_in(loop: ast.AST) -> set[str]:
    return {
        one.id for one in walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _is_whole(index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return index.lower is None and index.upper is None
    return isinstance(index, ast.Constant) and index.value is ...


def _gives_columns(node: ast.AST) -> bool:
    """``t.select(1, j)``, ``for column in a.T``"""
    if isinstance(node, ast.Call):
        return _takes_second_axis(node)
    over = getattr(node, "iter", None)
    return isinstance(over, ast.expr) and any(
        (isinstance(one, ast.Attribute) and one.attr in _TURNED)
        or (isinstance(one, ast.Call) and _takes_second_axis(one))
        for one in walk(over)
    )


def _takes_second_axis(call: ast.Call) -> bool:
    if called_name(call) not in _TAKING:
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(_number(one) in (1, -1) for one in given)


def _number(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _depth(loops: tuple[ast.AST, ...]) -> int:
    return len(loops) + _runs_over_places(loops)


def _runs_over_places(loops: tuple[ast.AST, ...]) -> bool:
    """Whether a loop runs over all places of an array."""
    heads = [getattr(loop, "iter", None) for loop in loops]
    calls = [one for one in heads if isinstance(one, ast.Call)]
    inner = [one for call in calls for one in call.args if isinstance(one, ast.Call)]
    return any(called_name(one) in _SEVERAL for one in (*calls, *inner))


def _is_element(node: ast.Subscript) -> bool:
    """``a[i, j]``, ``a[i][j]``"""
    return isinstance(node.value, ast.Subscript) or (
        isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1
    )


def _with_loops(
    node: ast.AST, loops: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    yield node, loops
    if isinstance(node, _FUNCTIONS):
        loops = ()
    elif isinstance(node, (*LOOPS, *COMPREHENSIONS)):
        loops = (*loops, node)
        yield node, loops
    for below in children(node):
        yield from _with_loops(below, loops)
