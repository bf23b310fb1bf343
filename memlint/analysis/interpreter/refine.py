"""What a condition that holds says of the values it tests."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from memlint.analysis.axes import OPAQUE, Layout, dense, dense_any_rank
from memlint.analysis.last_name import last_name
from memlint.analysis.values import Alternatives, Const, Tensor, Unknown, Value, join
from memlint.analysis.walking import walk

Change = Callable[[Value], Value]


def refinements(test: ast.expr, *, truth: bool) -> Iterator[tuple[ast.expr, Change]]:
    """Pairs of an expression and what it becomes where ``test`` is ``truth``."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from refinements(inner, truth=not truth)
        case ast.BoolOp(op=ast.And(), values=values) if truth:
            for value in values:
                yield from refinements(value, truth=True)
        case ast.BoolOp(op=ast.Or(), values=values) if not truth:
            for value in values:
                yield from refinements(value, truth=False)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from _compared(left, op, right, truth=truth)
        case ast.Call(func=ast.Attribute(value=array, attr="is_contiguous"), args=[], keywords=[]):
            if truth:
                yield array, _made_dense
        case ast.Call(func=ast.Attribute(value=array, attr="is_contiguous")):
            yield array, _of_unknown_layout
        case ast.Call(func=func, args=[tested, *classes]) if _denies_tensor(func, classes, truth):
            yield tested, _no_tensor
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() as each]) if truth:
            yield from _each(each)
        case (
            ast.Attribute(value=ast.Attribute(value=array, attr="flags"))
            | ast.Subscript(value=ast.Attribute(value=array, attr="flags"))
        ):
            if truth and _names_row_major(test):
                yield array, _made_dense
            else:
                yield array, _of_unknown_layout


_NUMBERS = frozenset({"int", "float", "complex", "bool", "str", "Number", "Real", "ndarray"})


def _denies_tensor(func: ast.expr, classes: list[ast.expr], truth: bool) -> bool:
    """Whether a test that is ``truth`` says that what it tests is no tensor."""
    asked = last_name(func)
    if asked == "is_tensor" and not classes:
        return not truth
    if asked != "isinstance" or len(classes) != 1:
        return False
    listed = classes[0].elts if isinstance(classes[0], ast.Tuple) else classes
    names = {last_name(one) for one in listed}
    return names <= _NUMBERS if truth else "Tensor" in names


def _names_row_major(test: ast.expr) -> bool:
    if isinstance(test, ast.Attribute):
        return test.attr in ("c_contiguous", "carray")
    if isinstance(test, ast.Subscript) and isinstance(test.slice, ast.Constant):
        return test.slice.value in ("C_CONTIGUOUS", "C", "CARRAY")
    return False


def _each(each: ast.GeneratorExp) -> Iterator[tuple[ast.expr, Change]]:
    """``all(t.is_contiguous() for t in (a, b))``"""
    generator = each.generators[0]
    if isinstance(generator.target, ast.Name) and isinstance(generator.iter, (ast.Tuple, ast.List)):
        for node, change in refinements(each.elt, truth=True):
            if isinstance(node, ast.Name) and node.id == generator.target.id:
                for item in generator.iter.elts:
                    yield item, change


def _compared(
    left: ast.expr, op: ast.cmpop, right: ast.expr, *, truth: bool
) -> Iterator[tuple[ast.expr, Change]]:
    if isinstance(right, ast.Constant) and right.value is None:
        if isinstance(op, (ast.IsNot, ast.NotEq)) is truth:
            yield left, _without_none
        elif isinstance(op, (ast.Is, ast.Eq)) is truth and isinstance(left, ast.Name):
            yield left, _none_alone
    for side in (left, right):
        if isinstance(side, (ast.Name, ast.Constant)):
            continue
        for node in walk(side):
            if isinstance(node, ast.Attribute) and node.attr in ("stride", "strides"):
                # Whoever tests strides knows about them: nothing is assumed any more.
                yield node.value, _of_unknown_layout


def _made_dense(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, layout=_dense_of(value.layout), born=None)
    if isinstance(value, Alternatives):
        return join(_made_dense(v) for v in value.values)
    return value


def _of_unknown_layout(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, layout=OPAQUE, born=None)
    if isinstance(value, Alternatives):
        return join(_of_unknown_layout(v) for v in value.values)
    return value


def _no_tensor(value: Value) -> Value:
    # What holds of an attribute in one branch stays with its object: so much is let go only.
    if isinstance(value, (Unknown, Tensor)):
        return replace(value, graphs=frozenset())
    if isinstance(value, Alternatives):
        return join(_no_tensor(v) for v in value.values)
    return value


def _without_none(value: Value) -> Value:
    if isinstance(value, Alternatives):
        kept = [v for v in value.values if not (isinstance(v, Const) and v.value is None)]
        return join(kept)
    return value


def _none_alone(value: Value) -> Value:
    if isinstance(value, Alternatives) and Const(None) in value.values:
        return Const(None)
    return value


def _dense_of(layout: Layout) -> Layout:
    return dense_any_rank() if layout.sizes is None else dense(layout.sizes)
