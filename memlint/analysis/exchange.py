"""Swapping the headers of two nested loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from memlint.analysis.events import Access, Loop
from memlint.analysis.values import deps_of
from memlint.analysis.walking import walk
from memlint.rule import Replacement
from memlint.source.model import Source

# Where functions come from that have no effects, and such functions by name.
PURE_MODULES = frozenset({"np", "numpy", "math", "cmath"})
PURE_FUNCTIONS = frozenset({"abs", "min", "max", "float", "int", "round", "bool", "complex", "len"})


def exchanged(
    outer: Loop, inner: Loop, accesses: Iterable[Access], source: Source
) -> tuple[Replacement, ...]:
    """The replacements that swap two loops; none where it cannot be seen to be sound.

    The nest must be perfect and its body free of effects but stores, each store must go to a
    place of its own, and nothing may be read of a stored array but that place.
    """
    if outer.symbol in deps_of(inner.start) | deps_of(inner.stop) or not _one_place_each(
        accesses, (outer, inner)
    ):
        return ()
    if outer.node is inner.node:
        return _swap_product(outer.node, source)
    match outer.node, inner.node:
        case (
            ast.For(target=ast.Name(), iter=ast.Call() as first, body=[body], orelse=[]),
            ast.For(target=ast.Name(), iter=ast.Call() as second, orelse=[]),
        ) if body is inner.node and _is_range(outer) and _is_range(inner):
            assert isinstance(outer.node, ast.For)
            assert isinstance(inner.node, ast.For)
            if not _harmless(inner.node.body):
                return ()
            return (
                Replacement(outer.node.target, _text(inner.node.target, source)),
                *_swap_all(first.args, second.args, first, second, source),
                Replacement(inner.node.target, _text(outer.node.target, source)),
            )
    return ()


def _is_range(loop: Loop) -> bool:
    return loop.kind in ("range", "prange")


def _swap_product(node: ast.AST, source: Source) -> tuple[Replacement, ...]:
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name() as a, ast.Name() as b]),
            iter=ast.Call(args=[first, second], keywords=[]),
            orelse=[],
        ) if _harmless(node.body):
            return (
                Replacement(a, _text(b, source)),
                Replacement(b, _text(a, source)),
                Replacement(first, _text(second, source)),
                Replacement(second, _text(first, source)),
            )
    return ()


def _swap_all(
    first: list[ast.expr],
    second: list[ast.expr],
    one: ast.Call,
    two: ast.Call,
    source: Source,
) -> Iterator[Replacement]:
    """Each call gets the other's arguments; which of them runs in parallel stays as it is."""
    for call, given in ((one, second), (two, first)):
        arguments = ", ".join(_text(node, source) for node in given)
        yield Replacement(call, f"{_text(call.func, source)}({arguments})")


def _text(node: ast.expr, source: Source) -> str:
    return source.segment(node)


def _one_place_each(accesses: Iterable[Access], loops: tuple[Loop, Loop]) -> bool:
    symbols = {loop.symbol for loop in loops}
    stored: dict[str, object] = {}
    known = list(accesses)
    for access in known:
        if access.mode != "load":
            deps = [deps_of(i) for i in access.index if not hasattr(i, "step")]
            if not symbols <= frozenset().union(*deps):
                return False
            if stored.setdefault(access.array, access.index) != access.index:
                return False
    return all(stored.get(a.array, a.index) == a.index for a in known)


def _harmless(body: list[ast.stmt]) -> bool:
    """Whether statements do nothing but store, add up, and set names before they read them."""
    written: set[str] = set()
    read: set[str] = set()
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.stmt) and not isinstance(
                node, (ast.Assign, ast.AugAssign, ast.If)
            ):
                return False
            if isinstance(node, ast.Call) and not _is_pure(node.func):
                return False
    for statement in body:
        if not _in_order(statement, written, read):
            return False
    return not read & written


def _in_order(statement: ast.stmt, written: set[str], read: set[str]) -> bool:
    """Note what is read before it is written; ``False`` for what cannot be followed."""
    if isinstance(statement, ast.If):
        read |= _names(statement.test) - written
        # What a branch sets may still hold an older iteration's value after it.
        inside: set[str] = set()
        for part in (*statement.body, *statement.orelse):
            own = set(written)
            if not _in_order(part, own, read):
                return False
            inside |= own - written
        return not inside
    if isinstance(statement, ast.AugAssign):
        read |= _names(statement.value) - written
        if isinstance(statement.target, ast.Name):
            commutes = isinstance(statement.op, (ast.Add, ast.Sub, ast.Mult))
            return commutes and statement.target.id not in read | written
        read |= _names(statement.target) - written
        return True
    if not isinstance(statement, ast.Assign):
        return False
    read |= _names(statement.value) - written
    for target in statement.targets:
        if isinstance(target, ast.Name):
            written.add(target.id)
        else:
            read |= _names(target) - written
    return True


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _is_pure(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name):
            return name in PURE_FUNCTIONS
        case ast.Attribute(value=ast.Name(id=module)):
            return module in PURE_MODULES
    return False
