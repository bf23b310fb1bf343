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
from memlint.analysis.walking import kinds_in, walk
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
    steps = _Steps(function, source) if sums else None
    return steps is not None and any(map(steps.may_sum_difference, sums))


def sums_what_is_given(function: ast.AST, around: str, source: str) -> bool:
    """Whether the differences of such a sum may be given to the function."""
    del around
    steps = _Steps(function, source)
    return any(
        steps.may_sum_difference(one) and steps.is_given(one) for one in _sums(function, source)
    )


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


class _Steps:
    """The steps of a function from one array to the next."""

    def __init__(self, function: ast.AST, source: str) -> None:
        kinds = kinds_in(function)
        self._body = getattr(function, "body", [])
        self._source = source
        self._set: dict[str, list[ast.expr | None]] = {}
        for one in kinds[ast.Assign]:
            for target in one.targets:
                self._note(target, one.value)
        for one in (*kinds[ast.AnnAssign], *kinds[ast.NamedExpr]):
            if one.value is not None:
                self._note(one.target, one.value)
        for one in kinds[ast.AugAssign]:
            # In place a power or a product is taken of what was there.
            kept = isinstance(one.op, (ast.Pow, ast.Mult, ast.Sub))
            self._note(one.target, None if kept else ast.Constant(0))
        for one in (*kinds[ast.For], *kinds[ast.comprehension]):
            self._note(one.target, None)
        for one in kinds[ast.withitem]:
            if one.optional_vars is not None:
                self._note(one.optional_vars, None)
        self._given = {one.arg for one in kinds[ast.arg]}

    def _note(self, target: ast.expr, value: ast.expr | None) -> None:
        """``None`` stands for what may be anything."""
        whole = isinstance(target, ast.Name)
        for one in walk(target):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self._set.setdefault(one.id, []).append(value if whole else None)

    def may_sum_difference(self, call: ast.Call) -> bool:
        """Whether what is summed may be a difference that is measured."""
        measured = "norm" in _short(call.func, self._source)
        return any(self.may_be_difference(one, call, measured=measured) for one in _summed(call))

    def is_given(self, call: ast.Call) -> bool:
        """Whether what is summed may rest on a parameter."""
        waiting = [
            below.id for one in _summed(call) for below in walk(one) if isinstance(below, ast.Name)
        ]
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            if name in self._given and name != "self" and not self._is_replaced(name, call):
                return True
            for value in self._set.get(name, []):
                new = (
                    {one.id for one in walk(value) if isinstance(one, ast.Name)}
                    if value is not None
                    else set()
                )
                waiting += new - seen
                seen |= new
        return False

    def may_be_difference(
        self, node: ast.expr, use: ast.expr, *, measured: bool, depth: int = _DEPTH
    ) -> bool:
        """Whether a value may be a difference, or elementwise operations on one: of bare
        differences only a norm counts."""

        def may_be(one: ast.expr, *, counts: bool = measured) -> bool:
            return self.may_be_difference(one, use, measured=counts, depth=depth - 1)

        if depth == 0:
            return True
        match node:
            case ast.Name(id=name):
                return self._may_be_named(name, use, measured=measured, depth=depth - 1)
            case ast.Attribute(attr=name):
                return f".{name} =" in self._source or f".{name}:" in self._source
            case ast.BinOp(op=ast.Sub()):
                return measured
            case ast.BinOp(op=ast.Pow(), left=left):
                return may_be(left, counts=True)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return _are_alike(left, right) and may_be(left, counts=True)
            case ast.IfExp(body=one, orelse=other):
                return may_be(one) or may_be(other)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return may_be(value)
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
                    return any(may_be(one, counts=True) for one in _summed(node))
                return may_be_followed(func, self._source)
        return False

    def _may_be_named(self, name: str, use: ast.expr, *, measured: bool, depth: int) -> bool:
        values = self._set.get(name, [])
        if any(
            one is None or self.may_be_difference(one, use, measured=measured, depth=depth)
            for one in values
        ):
            return True
        if not values:
            return name in self._given or f"{name} =" in self._source
        return name in self._given and not self._is_replaced(name, use)

    def _is_replaced(self, name: str, use: ast.expr) -> bool:
        """Whether a parameter has been given another value for certain."""
        return any(
            isinstance(one, ast.Assign)
            and (one.end_lineno or one.lineno) < use.lineno
            and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
            for one in self._body
        )


def _are_alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two factors may be the same value."""
    names = {two.id if isinstance(two, ast.Name) else "" for two in (one, other)}
    return isinstance(one, ast.NamedExpr) or len(names) == 1
