"""Subscripts of arrays, and their attributes."""

from __future__ import annotations

import ast
from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import OPAQUE, Cut, IndexItem, Item, Layout
from memlint.analysis.knowledge.model import Args, Call, SliceValue
from memlint.analysis.knowledge.numbers import bound, integer, value_of
from memlint.analysis.knowledge.results import fresh, view
from memlint.analysis.knowledge.views import last_two, reverse
from memlint.analysis.linear import add, linear
from memlint.analysis.values import (
    Const,
    Ref,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
)

ELLIPSIS = Const("...")
"""How an ellipsis in a subscript is written as a value."""


def subscript(receiver: Tensor, items: tuple[Value | SliceValue, ...], node: ast.AST) -> Value:
    """The value of ``receiver[items]``."""
    call = Call("subscript", receiver.lib, Args((receiver,)), node, Site(node, "subscript"))
    if any(_copies(item) for item in items):
        return _gathered(call, receiver, items)
    kinds = [_item(item) for item in items]
    layout = axes.index(receiver.layout, kinds)
    if Item.OTHER in kinds:
        return replace(view(call, receiver, OPAQUE), site=None)
    return view(call, receiver, layout)


def _copies(item: Value | SliceValue) -> bool:
    """Whether an item is surely an array or a list, so that elements are gathered."""
    return isinstance(item, Sequence) or (isinstance(item, Tensor) and item.layout.rank != 0)


def _item(item: Value | SliceValue) -> IndexItem:
    if isinstance(item, SliceValue):
        return Cut(bound(item.start), bound(item.stop), bound(item.step), _length(item))
    if item == ELLIPSIS:
        return Item.REST
    if item == Const(None) or item in (Ref("numpy.newaxis"), Ref("cupy.newaxis")):
        return Item.NEW
    return Item.AT if linear(item) is not None else Item.OTHER


def _length(item: SliceValue) -> int | None:
    """How many positions a slice has whatever its start: ``i * 8 : i * 8 + 8``."""
    start, stop = linear(item.start), linear(item.stop)
    if start is None or stop is None or not start.terms or integer(item.step, 1) not in (1, None):
        return None
    if item.step != Const(None) and integer(item.step) != 1:
        return None
    difference = add(stop, start, -1)
    return difference.offset if not difference.terms and difference.offset > 0 else None


def _gathered(call: Call, receiver: Tensor, items: tuple[Value | SliceValue, ...]) -> Tensor:
    """Elements picked by arrays: a copy, row-major where the array is and one list of rows
    picks them."""
    layout: Layout = OPAQUE
    only = items[0] if len(items) == 1 else None
    if axes.contiguous(receiver.layout) is not True:
        return fresh(call, layout, of=(receiver,), dtype=receiver.dtype)
    if only is not None:
        is_mask = isinstance(only, Tensor) and only.dtype in ("bool", None)
        layout = axes.dense_any_rank()
        if not is_mask and isinstance(only, Sequence) and only.items is not None:
            inner = receiver.sizes[1:] if receiver.sizes else None
            layout = layout if inner is None else axes.dense((len(only.items), *inner))
    elif call.lib == "numpy" and _picks_columns(items):
        layout = _columns(receiver, items[1])
    return fresh(call, layout, of=(receiver,), dtype=receiver.dtype)


def _picks_columns(items: tuple[Value | SliceValue, ...]) -> bool:
    """``x[:, [2, 0]]``: which numpy lays out with the list's axis outermost."""
    if len(items) != 2 or not isinstance(items[0], SliceValue):
        return False
    picked = items[1]
    return isinstance(picked, Sequence) and all(
        isinstance(item, Const) for item in picked.items or (None,)
    )


def _columns(receiver: Tensor, picked: Value | SliceValue) -> Layout:
    if receiver.layout.axes is None:
        return axes.transpose(axes.dense_any_rank(), 0, 1)
    rest = (receiver.sizes or ())[2:]
    count = len(picked.items) if isinstance(picked, Sequence) and picked.items else None
    return axes.transpose(axes.dense((count, None, *rest)), 0, 1)


def attribute(receiver: Tensor, name: str, node: ast.AST) -> Value | None:
    """The value of ``receiver.name``; ``None`` where it is not in the tables."""
    call = Call(name, receiver.lib, Args((receiver,)), node, Site(node, name))
    match name:
        case "T":
            return reverse(call)
        case "mT" | "mH":
            return last_two(call)
        case "H":
            return reverse(call)
        case "data" if receiver.lib != "numpy":
            return receiver
        case "real" | "imag" if (receiver.dtype or "").startswith("complex"):
            part = "float32" if receiver.dtype == "complex64" else "float64"
            return replace(view(call, receiver, axes.every_other(receiver.layout)), dtype=part)
        case "real":
            return receiver if (receiver.dtype or "").startswith(("float", "int")) else None
        case "grad":
            return Unknown(devices=receiver.devices)
        case "shape":
            return shape(receiver)
        case "ndim":
            rank = receiver.layout.rank
            return None if rank is None else Const(rank)
        case "dtype":
            lib = receiver.lib or None
            known = lib is not None and receiver.dtype is not None
            return Ref(f"{lib}.{receiver.dtype}") if known else Unknown()
        case "is_cuda":
            return Const("cuda" in receiver.devices) if len(receiver.devices) == 1 else Unknown()
        case "device":
            only = next(iter(receiver.devices)) if len(receiver.devices) == 1 else None
            return Unknown(devices=receiver.devices) if only is None else Const(only)
    return None


def shape(receiver: Tensor) -> Value | None:
    """``shape`` as a tuple, where the size of each axis has a value."""
    if receiver.sizes is None:
        return None
    values = [value_of(size) for size in receiver.sizes]
    known = [value for value in values if value is not None]
    return Sequence("tuple", tuple(known)) if len(known) == len(values) else None


def size(call: Call) -> Value | None:
    """``size()`` and ``size(dim)``."""
    base, given = call.tensor, call.get("dim", at=1)
    if base is None or base.sizes is None:
        return None
    if len(call.args.positional) < 2 and "dim" not in call.args.keywords:
        return shape(base)
    axis = integer(given)
    place = None if axis is None else axes.resolve(axis, len(base.sizes))
    return None if place is None else value_of(base.sizes[place])


def dim(call: Call) -> Value | None:
    """``dim()``: the number of axes."""
    base = call.tensor
    return None if base is None or base.layout.rank is None else Const(base.layout.rank)


def is_contiguous(call: Call) -> Value | None:
    """``is_contiguous()``, where it is known of the layout without any assumption."""
    base = call.tensor
    if base is None or base.assumed or len(call.args.positional) > 1 or call.args.keywords:
        return None
    known = axes.contiguous(base.layout)
    return None if known is None else Const(known)
