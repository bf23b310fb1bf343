"""Which functions may store again and again into the element of one worker: a sieve."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.leading_names import code_of, definitions
from memlint.analysis.looped_text import called_in_loops
from memlint.analysis.paths import names_in
from memlint.analysis.surroundings import LOOPS
from memlint.analysis.walking import children, nodes_of, walk
from memlint.late_pattern import late_pattern

# Loops whose iterations workers share out, and methods that these run without being named.
_PARALLEL = ("prange", "pndindex")
_UNNAMED = frozenset({"run", "__call__"})
_HANDED = late_pattern(r"(?:[=(,\[:]|\breturn\b)\s*(?:\w+\.)*(\w+)\s*(?=[,)\n\]}])")
_LAMBDA = late_pattern(r"lambda[^\n]*")
_CALLED = late_pattern(r"\b(\w+)\(")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def may_store_again(function: ast.AST, around: str, source: str) -> bool:
    """Whether a loop in a function, or one that calls it, stores into an element whose index
    that loop does not count, and whether workers may run it."""
    if not any(True for _ in _stored_at(function)):
        return False
    name = getattr(function, "name", "")
    again = any(True for _ in _stores(function, None)) or (
        bool(name) and called_in_loops(source, name)
    )
    return again and _may_run_in_workers(function, source)


def _may_run_in_workers(function: ast.AST, source: str) -> bool:
    """Whether a function, or one that leads to it, is handed to somebody, or is a ``run``."""
    if any(word in source for word in _PARALLEL):
        return True
    names = {one.name for one in nodes_of(function) if isinstance(one, ast.FunctionDef)}
    return not names.isdisjoint(_run_by_workers(source))


@lru_cache(maxsize=4)
def _run_by_workers(source: str) -> frozenset[str]:
    """The functions that are handed on, or run without being named, and what these call."""
    calls: dict[str, set[str]] = {}
    for one in definitions(source):
        calls.setdefault(one.name, set()).update(_CALLED.findall(one.text))
    code = code_of(source)
    found = {*_HANDED.findall(code), *_UNNAMED}
    found.update(name for text in _LAMBDA.findall(code) for name in _CALLED.findall(text))
    fresh = found & calls.keys()
    while fresh:
        fresh = {name for one in fresh for name in calls[one]} & calls.keys() - found
        found |= fresh
    return frozenset(found)


def _stored_at(function: ast.AST) -> Iterator[ast.AST]:
    """The stores of a function that some name tells the place of."""
    for node in nodes_of(function):
        stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        if stored and any(map(names_in, _indices(node))):
            yield node


def _stores(node: ast.AST, loop: ast.AST | None) -> Iterator[ast.expr]:
    """The stores below a node in loops that leave a part of their index as it is."""
    if isinstance(node, _FUNCTIONS):
        loop = None
    elif isinstance(node, LOOPS):
        loop = node
    elif loop is not None and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        varying = _varying_in(loop)
        if any(_stays(index, varying) for index in _indices(node)):
            yield node
    for below in children(node):
        yield from _stores(below, loop)


def _indices(node: ast.AST) -> Iterator[ast.expr]:
    """What an element is found by: ``i`` and ``j`` of ``a[i][j]`` and ``a[i, j]``."""
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            yield from node.slice.elts
        else:
            yield node.slice
        node = node.value


def _stays(index: ast.expr, varying: set[str]) -> bool:
    """Whether an index depends on something else than what a loop runs through."""
    return not isinstance(index, ast.Slice) and bool(names_in(index) - varying)


def _varying_in(loop: ast.AST) -> set[str]:
    """The variables that another iteration of a loop gives another value, whichever thread
    runs it."""
    nodes = [node for one in loop.body for node in walk(one)]  # type: ignore[attr-defined]
    if isinstance(loop, ast.While):
        varying = {
            one.target.id
            for one in nodes
            if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
        }
    else:
        varying = names_in(loop.target)  # type: ignore[attr-defined]
    for one in nodes:
        match one:
            case ast.For(target=target):
                varying |= names_in(target)
            case ast.Assign(targets=targets, value=value) if _varies(value, varying):
                for target in targets:
                    if isinstance(target, (ast.Name, ast.Tuple)):
                        varying |= names_in(target)
    return varying


def _varies(value: ast.expr, varying: set[str]) -> bool:
    if any(isinstance(one, (ast.Call, ast.Subscript)) for one in walk(value)):
        return "thread" not in ast.unparse(value)
    return not varying.isdisjoint(names_in(value))
