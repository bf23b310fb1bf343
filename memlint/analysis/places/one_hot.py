"""Which functions may multiply with a one-hot matrix, by their syntax alone: a sieve."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.changes import called_name
from memlint.analysis.one_hot import SAME
from memlint.analysis.paths import names_in
from memlint.analysis.uses import Use, Uses
from memlint.analysis.walking import as_module, kinds_in
from memlint.late_pattern import late_pattern

_PRODUCTS = frozenset({"matmul", "mm", "dot", "linear", "einsum"})
_IDENTITIES = frozenset({"eye", "identity"})
_LIBRARIES = frozenset({"torch", "np", "numpy", "F", "nn", "jnp", "scipy"})
_LEAVES = frozenset({"returned", "yielded", "stored", "contained", "captured", "updated"})
_ALIAS = late_pattern(r"one_hot as (\w+)")


def may_multiply(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function makes a one-hot matrix that may be a factor of a product."""
    return any(True for _ in _multiplied(function, source))


def may_multiply_elsewhere(function: ast.AST, around: str, source: str) -> bool:
    """Whether that may happen in another function, or its size may be given by one."""
    given = {one.arg for one in kinds_in(function)[ast.arg]} - {"self", "cls"}
    return any(
        leaves or not given.isdisjoint(names_in(made))
        for made, leaves in _multiplied(function, source)
    )


def _multiplied(function: ast.AST, source: str) -> Iterator[tuple[ast.expr, bool]]:
    """One-hot matrices that are or may become factors, with whether they leave the function."""
    kinds, makers = kinds_in(function), _names_of_makers(source)
    made = [one for one in (*kinds[ast.Call], *kinds[ast.Subscript]) if _is_made(one, makers)]
    if not made:
        return
    uses = Uses(as_module(function))
    for one in made:
        for start in _starts(one, kinds[ast.Name], uses):
            way = _way(start, uses)
            if way is not None:
                yield one, way


@lru_cache(maxsize=4)
def _names_of_makers(source: str) -> frozenset[str]:
    return frozenset({"one_hot", *_ALIAS.findall(source)})


def _is_made(node: ast.expr, makers: frozenset[str]) -> bool:
    match node:
        case ast.Call():
            name = called_name(node)
            return (
                name in makers
                or name in _IDENTITIES
                or (name in ("scatter", "scatter_") and _writes_ones(node))
            )
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Call() as first, _]), ctx=ast.Store()):
            return called_name(first) == "arange"
    return False


def _writes_ones(call: ast.Call) -> bool:
    """``z.scatter_(1, i, 1)``"""
    given = [*call.args[2:], *(k.value for k in call.keywords if k.arg in ("value", "src"))]
    return any(
        isinstance(one, ast.Name) or (isinstance(one, ast.Constant) and one.value == 1)
        for one in given
    )


def _starts(made: ast.expr, names: list[ast.Name], uses: Uses) -> Iterator[ast.expr]:
    """The expressions that are the one-hot matrix."""
    if isinstance(made, ast.Call) and called_name(made) in _IDENTITIES:
        for use in uses.of(made):
            rows = use.node
            by_index = use.kind == "item" and isinstance(rows, ast.Subscript)
            if by_index and not isinstance(rows.slice, (ast.Constant, ast.Slice)):  # type: ignore[attr-defined]
                yield rows  # type: ignore[misc]
        return
    if isinstance(made, ast.Call):
        yield made
        if called_name(made) != "scatter_":
            return
    written = made.func if isinstance(made, ast.Call) else made
    base = getattr(written, "value", None)
    if isinstance(base, ast.Name):
        yield from (one for one in names if one.id == base.id and isinstance(one.ctx, ast.Load))


def _way(start: ast.expr, uses: Uses) -> bool | None:
    """Whether a matrix leaves the function, if it may be a factor at all."""
    pending, seen = [start], {start}
    multiplied = leaves = False
    while pending:
        for use in uses.of(pending.pop()):
            leaves = leaves or _leaves(use)
            multiplied = multiplied or _multiplies(use)
            onward = use.node
            same = use.kind == "receiver" and use.name in SAME
            if same and isinstance(onward, ast.expr) and onward not in seen:
                seen.add(onward)
                pending.append(onward)
    return leaves if multiplied or leaves else None


def _multiplies(use: Use) -> bool:
    if use.kind == "operand":
        return use.name == "MatMult"
    return use.kind in ("receiver", "argument") and use.name.rpartition(".")[2] in _PRODUCTS


def _leaves(use: Use) -> bool:
    """Whether a matrix is handed on: to a caller, a layer, a function of the program."""
    if use.kind != "argument":
        return use.kind in _LEAVES
    return use.name.partition(".")[0] not in _LIBRARIES
