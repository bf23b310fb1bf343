"""Which subscripts may take a part of constant size, by the syntax of one function alone."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from memlint.analysis.last_name import last_name

# Methods that give no number that is known.
_NO_NUMBERS = frozenset(
    {"bool", "long", "nonzero", "argmax", "argmin", "argsort", "to", "item", "astype", "flatten"}
)
# A function that gives a part of what it is given.


def settings(
    kinds: Mapping[type[ast.AST], list[Any]],
) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    """The assignments: targets and value."""
    for one in kinds[ast.Assign]:
        yield one.targets, one.value
    for kind in (ast.AnnAssign, ast.NamedExpr):
        for one in kinds[kind]:
            if one.value is not None:
                yield [one.target], one.value


def counted(kinds: Mapping[type[ast.AST], list[Any]]) -> frozenset[str]:
    """The names that only count the iterations of loops: each is many numbers."""
    counts = Counter[str]()
    for kind in (ast.For, ast.comprehension):
        for one in kinds[kind]:
            match one.target, one.iter:
                case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=args):
                    if not all(isinstance(given, ast.Constant) for given in args):
                        counts[name] += 1
                case (
                    ast.Tuple(elts=[ast.Name(id=name), *_]),
                    ast.Call(func=ast.Name(id="enumerate")),
                ):
                    counts[name] += 1
    if not counts:
        return frozenset()
    bound = Counter(one.id for one in kinds[ast.Name] if isinstance(one.ctx, ast.Store))
    bound.update(one.arg for one in kinds[ast.arg])
    found = {name for name, times in counts.items() if bound[name] == times}
    for targets, value in settings(kinds):
        match targets:
            case [ast.Name(id=name)] if bound[name] == 1 and not _may_be_number(value, found):
                found.add(name)
    return frozenset(found)


def may_be_small(view: ast.Subscript, counted: Set[str]) -> bool:
    """Whether a subscript may take a part of constant size."""
    if not isinstance(view.ctx, ast.Load):
        return False
    keys = view.slice.elts if isinstance(view.slice, ast.Tuple) else [view.slice]
    ends = [one.upper if isinstance(one, ast.Slice) else one for one in keys]
    return any(one is not None and _may_be_number(one, counted) for one in ends)


def _may_be_number(key: ast.expr, counted: Set[str]) -> bool:
    """Whether a position, or the end of a slice, may be a number that is known."""
    match key:
        case ast.List() | ast.Compare() | ast.JoinedStr() | ast.Dict():
            return False
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return name not in counted
        case ast.UnaryOp(operand=operand):
            return _may_be_number(operand, counted)
        case ast.BinOp(left=left, right=right):
            return _may_be_number(left, counted) and _may_be_number(right, counted)
        case ast.Call(func=func):
            return last_name(func) not in _NO_NUMBERS
    return True
