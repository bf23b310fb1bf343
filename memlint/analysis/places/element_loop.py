"""Which functions may compute with the elements of an array one by one: a sieve.

What such a loop may hold is told by its syntax, so that only the arrays are left to be known.
"""

from __future__ import annotations

import ast

from memlint.analysis.element_loops import computes, counts_axes, is_arithmetic
from memlint.analysis.walking import nodes_of


def may_compute_by_elements(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function has a loop, or a sum over a generator, that only does arithmetic."""
    del around, source
    return any(_is_loop(one) or _is_summed(one) for one in nodes_of(function))


def _is_loop(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.For)
        and not node.orelse
        and not counts_axes(node.iter)
        and is_arithmetic(node.body)
    )


def _is_summed(node: ast.AST) -> bool:
    match node:
        case ast.Call(args=[ast.GeneratorExp(elt=elt, generators=[ast.comprehension(ifs=[])])]):
            return computes(elt, set(), set())
    return False
