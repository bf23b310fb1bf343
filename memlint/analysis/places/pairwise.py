"""Which functions may sum up the differences of all pairs of rows: a sieve."""

from __future__ import annotations

import ast

from memlint.analysis.last_name import last_name
from memlint.analysis.pairwise import COLUMNS, REDUCTIONS
from memlint.analysis.walking import nodes_of
from memlint.late_pattern import late_pattern

NEW_AXIS = late_pattern(r"[\[,]\s*None\s*[,\]]|newaxis|unsqueeze|expand_dims")
"""What gives an array an axis of its own."""
DIFFERENCE = late_pattern(r"[\w)\]]\s*-\s*[\w(\[]|\bsub(?:tract)?\b")
"""What subtracts."""


def may_sum_columns(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function has a sum along what may be the columns of all pairs."""
    del around, source
    return any(
        isinstance(one, ast.Call) and last_name(one.func) in REDUCTIONS and _may_be_columns(one)
        for one in nodes_of(function)
    )


def _may_be_columns(call: ast.Call) -> bool:
    named = [one.value for one in call.keywords if one.arg in ("dim", "axis", None)]
    # A method's axis comes first, that of a function of numpy or torch second or third.
    return any(_may_be_axis(one) for one in (*named, *call.args[:4]))


def _may_be_axis(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
            return -number in COLUMNS if isinstance(number, int) else False
        case ast.Constant(value=value):
            return type(value) is int and value in COLUMNS
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(map(_may_be_axis, elts))
    return True
