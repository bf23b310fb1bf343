"""Numba's signatures: which layouts they declare."""

from __future__ import annotations

import ast

from memlint.analysis.axes import Layout, dense, fortran
from memlint.analysis.knowledge import dtype_of
from memlint.analysis.values import Const, Tensor

Signature = tuple[ast.expr, ...]


def signatures_of(node: ast.expr) -> list[Signature]:
    """The argument types of each signature that a decorator's argument holds.

    ``"void(f8[:, :])"``, ``void(f8[:, :])``, ``(f8[:, :],)`` and lists of them.
    """
    match node:
        case ast.Constant(value=str() as text):
            try:
                parsed = ast.parse(text.strip(), mode="eval").body
            except SyntaxError:
                # Not a signature: whatever it is, it declares nothing.
                return []
            return [] if isinstance(parsed, ast.Constant) else signatures_of(parsed)
        case ast.List(elts=items):
            return [signature for item in items for signature in signatures_of(item)]
        case ast.Tuple(elts=items):
            return [tuple(items)]
        case ast.Call(args=items):
            return [tuple(items)]
    return []


def array_type(node: ast.AST) -> Tensor | None:
    """What ``float64[:, ::1]`` or ``types.Array(float64, 2, "C")`` says of an array."""
    match node:
        case ast.Subscript(value=element, slice=ast.Slice() as only):
            return _array(element, [only])
        case ast.Subscript(value=element, slice=ast.Tuple(elts=items)):
            slices = [item for item in items if isinstance(item, ast.Slice)]
            return _array(element, slices) if slices and len(slices) == len(items) else None
        case ast.Call(
            func=ast.Attribute(attr="Array") | ast.Name(id="Array"),
            args=[element, ast.Constant(value=int() as rank), ast.Constant(value=str() as order)],
        ):
            return _of_order(element, rank, order)
    return None


def _array(element: ast.expr, slices: list[ast.Slice]) -> Tensor:
    rank = len(slices)
    if _dense_along(slices[-1]):
        return _of_order(element, rank, "C")
    return _of_order(element, rank, "F" if _dense_along(slices[0]) else "A")


def _dense_along(item: ast.Slice) -> bool:
    return isinstance(item.step, ast.Constant) and item.step.value == 1


def _of_order(element: ast.expr, rank: int, order: str) -> Tensor:
    """An array of one of Numba's layouts; "A" declares none, so that the assumption holds."""
    sizes = (None,) * rank
    layout: Layout = fortran(sizes) if order == "F" else dense(sizes)
    return Tensor("numpy", layout, _dtype(element), assumed=order not in ("C", "F") and rank > 1)


def _dtype(element: ast.expr) -> str | None:
    match element:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return dtype_of(Const(name))
    return None
