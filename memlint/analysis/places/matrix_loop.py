"""Which functions may compute a matrix product in loops, by their syntax alone: a sieve."""

from __future__ import annotations

import ast

from memlint.analysis.changes import called_name
from memlint.analysis.walking import children, kinds_in, walk

# Rows, columns, and what is summed up.
DEPTH = 3
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SEVERAL = frozenset({"product", "ndindex", "pndindex"})
_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)


def may_compute_product(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function multiplies what may be elements in loops that are nested three deep; a
    function within it counts as called in all of its loops."""
    del around, source
    kinds = kinds_in(function)
    products = {one for one in kinds[ast.BinOp] if _may_be_of_elements(one)}
    if not products:
        return False
    loops = [one for kind in _LOOPS for one in kinds[kind]]
    total = sum(map(_weight, loops))
    return total >= DEPTH and _deepest(function, products, total) >= DEPTH


def _may_be_of_elements(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return (
        isinstance(node.op, ast.Mult)
        and not any(isinstance(one, _LISTS) for one in sides)
        and any(_picks(one) for one in sides)
    )


def _picks(node: ast.expr) -> bool:
    """Whether an operand takes an element by an index that may move."""
    return any(
        isinstance(one, ast.Subscript)
        and any(isinstance(key, (ast.Name, ast.Attribute)) for key in walk(one.slice))
        for one in walk(node)
    )


def _weight(loop: ast.AST) -> int:
    """How many loops one may stand for."""
    over = getattr(loop, "iter", None)
    called = [one for one in walk(over) if isinstance(one, ast.Call)] if over is not None else []
    return DEPTH if any(called_name(one) in _SEVERAL for one in called) else 1


def _deepest(function: ast.AST, products: set[ast.BinOp], total: int) -> int:
    """How many loops are around one of the products, at most."""
    deepest = 0
    waiting: list[tuple[ast.AST, int]] = [(function, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node in products:
            deepest = max(deepest, depth)
        if isinstance(node, _FUNCTIONS) and node is not function:
            depth = total
        elif isinstance(node, _COMPREHENSIONS):
            depth += sum(map(_weight, node.generators))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            depth += _weight(node)
        waiting.extend((below, depth) for below in children(node))
    return deepest
