"""Which functions may sum up the differences of all pairs of rows: a sieve.

It asks what :mod:`memlint.analysis.pairwise` asks of the steps from a difference to its sum, as
far as they are written in the function, and errs on the side of yes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.imported_names import imported
from memlint.analysis.last_name import last_name
from memlint.analysis.pairwise import COLUMNS, ELEMENTWISE, REDUCTIONS
from memlint.analysis.places.followed import may_be_followed
from memlint.analysis.places.steps import Steps, kept_attributes
from memlint.analysis.walking import kinds_in
from memlint.late_pattern import late_pattern

NEW_AXIS = late_pattern(
    r",\s*None\s*[,\]]|newaxis|unsqueeze_?(?!\w)(?!\(\s*(?:dim\s*=\s*)?(?:0|-\s*\d)\s*,?\s*\))|expand_dims"
)
"""What may give an array a second axis of its own."""
DIFFERENCE = late_pattern(r"[\w)\]]\s*-\s*[\w(\[]|\bsub(?:tract)?\b")
"""What subtracts."""
_SUBTRACTING = frozenset({"sub", "subtract"})
_DEPTH = 12


def may_sum_columns(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function has a sum along what may be the columns of all pairs."""
    del around
    sums = _sums(function, source)
    found = _Differences(function, source) if sums else None
    return found is not None and any(map(found.may_be_summed, sums))


def sums_what_is_given(function: ast.AST, around: str, source: str) -> bool:
    """Whether the differences of such a sum may be given to the function."""
    del around
    found = _Differences(function, source)
    return any(found.may_be_summed(one) and found.is_given(one) for one in _sums(function, source))


def _sums(function: ast.AST, source: str) -> list[ast.Call]:
    renamed = _renamed(source)
    return [
        one
        for one in kinds_in(function)[ast.Call]
        if (_short(one.func, source) if renamed else last_name(one.func)) in REDUCTIONS
        and _may_be_columns(one, source)
    ]


@lru_cache(maxsize=4)
def _renamed(source: str) -> bool:
    """Whether a source may give a sum another name."""
    return any(f"{name} as " in source for name in REDUCTIONS)


def _short(func: ast.expr, source: str) -> str:
    """The last name of a function, by the module that it is imported from."""
    if isinstance(func, ast.Name):
        return imported(source).get(func.id, func.id).rpartition(".")[2]
    return last_name(func)


def _may_be_columns(call: ast.Call, source: str) -> bool:
    named = [one.value for one in call.keywords if one.arg in ("dim", "axis", None)]
    # What is summed comes first, but for a method; of a norm its order comes before the axis.
    first = 1 if isinstance(call.func, ast.Name) else 0
    first += "norm" in _short(call.func, source)
    given = call.args[first : first + 2]
    if any(isinstance(one, ast.Starred) for one in call.args):
        return True
    return any(_may_be_axis(one) for one in (*named, *given))


def _may_be_axis(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)):
            return -number in COLUMNS if isinstance(number, int) else False
        case ast.Constant(value=value):
            return type(value) is int and value in COLUMNS
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(map(_may_be_axis, elts))
    return True


def _summed(call: ast.Call) -> Iterator[ast.expr]:
    """What a sum may be of: the object of a method, or the first argument."""
    yield from call.args[:1]
    yield from (one.value for one in call.keywords if one.arg in ("input", "a", "x", None))
    if isinstance(call.func, ast.Attribute):
        yield call.func.value
    elif not isinstance(call.func, ast.Name):
        yield call.func


class _Differences:
    """Which values of a function may be differences."""

    def __init__(self, function: ast.AST, source: str) -> None:
        self._steps, self._source = Steps(function, source), source

    def may_be_summed(self, call: ast.Call) -> bool:
        """Whether what is summed may be a difference that is measured."""
        measured = "norm" in _short(call.func, self._source)
        return any(self.may_be(one, call, measured=measured) for one in _summed(call))

    def is_given(self, call: ast.Call) -> bool:
        """Whether what is summed may rest on a parameter."""
        return self._steps.is_given(_summed(call), call)

    def may_be(self, node: ast.expr, use: ast.expr, *, measured: bool, depth: int = _DEPTH) -> bool:
        """Whether a value may be a difference, or elementwise operations on one: of bare
        differences only a norm counts."""

        def is_one(one: ast.expr, *, counts: bool = measured) -> bool:
            return self.may_be(one, use, measured=counts, depth=depth - 1)

        if depth == 0:
            return True
        match node:
            case ast.Name(id=name):
                return any(one is None or is_one(one) for one in self._steps.values_of(name, use))
            case ast.Attribute(attr=name):
                return name in kept_attributes(self._source)
            case ast.BinOp(op=ast.Sub()):
                return measured
            case ast.BinOp(op=ast.Pow(), left=left):
                return is_one(left, counts=True)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return _are_alike(left, right) and is_one(left, counts=True)
            case ast.IfExp(body=one, orelse=other):
                return is_one(one) or is_one(other)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return is_one(value)
            case ast.Subscript(value=value, slice=key):
                # An entry of a collection, not a part of an array.
                return not isinstance(key, (ast.Slice, ast.Tuple)) and not isinstance(
                    value, ast.BinOp
                )
            case ast.Call(func=func):
                name = _short(func, self._source)
                if name.rstrip("_") in _SUBTRACTING:
                    return measured
                if name.rstrip("_") in ELEMENTWISE:
                    return any(is_one(one, counts=True) for one in _summed(node))
                return may_be_followed(func, self._source)
        return False


def _are_alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two factors may be the same value."""
    names = {two.id if isinstance(two, ast.Name) else "" for two in (one, other)}
    return isinstance(one, ast.NamedExpr) or len(names) == 1
