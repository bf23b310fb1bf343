"""Loops that take one column after the other out of a wide array."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.axes import fastest_axis
from memlint.analysis.events import Access, Loop, LoopNest
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.linear import add, linear
from memlint.analysis.locality import arrays_in, bytes_of
from memlint.analysis.values import (
    Const,
    Sequence,
    Tensor,
    Value,
    alternatives,
)
from memlint.late_dataclass import dataclass

WIDE = 1024
MANY = 64
LARGE_BYTES = 1 << 20
WHOLE = SliceValue()
REST = Const("...")


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """Columns of a row-major array of ``width`` columns, one per iteration of ``loop``."""

    node: ast.AST
    loop: Loop
    array: str
    width: int
    dtype: str | None
    writes: bool
    iterates: bool
    torch: bool
    made: ast.AST | None


def column_reads(nest: LoopNest) -> Iterator[ColumnRead]:
    """Whole columns that a nest takes, in source order."""
    for access in sorted(nest.accesses, key=lambda a: (a.node.lineno, a.node.col_offset)):  # type: ignore[attr-defined]
        found = _slice_of(access)
        if found is not None:
            yield found
    loop = nest.loops[-1]
    if loop.iterated is not None:
        node = _counted(loop.iterated)
        for value in arrays_in(loop.iterates):
            width = _width_of_items(value)
            if width is not None:
                yield _read(node, loop, ast.unparse(node), width, value, "")


def _counted(node: ast.expr) -> ast.expr:
    """What ``enumerate(...)`` counts."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return inner
    return node


def _slice_of(access: Access) -> ColumnRead | None:
    values = [v for v in alternatives(access.value) if isinstance(v, Tensor)]
    if len(values) != len(alternatives(access.value)):
        return None
    column = _one_column(access)
    if column is None:
        return None
    axis, loop = column
    widths = {_width(value, axis) for value in values}
    width = widths.pop()
    if widths or width is None:
        return None
    return _read(access.node, loop, access.array, width, values[0], access.mode)


def _read(node: ast.AST, loop: Loop, array: str, width: int, value: Value, mode: str) -> ColumnRead:
    one = value.element if isinstance(value, Sequence) else value
    assert isinstance(one, Tensor)
    made = one.site.node if one.site is not None and hasattr(one.site.node, "lineno") else None
    writes = mode in ("store", "update")
    return ColumnRead(
        node, loop, array, width, one.dtype, writes, mode == "", one.lib == "torch", made
    )


def _one_column(access: Access) -> tuple[int, Loop] | None:
    """The axis of which ``a[:, j]`` takes one position, and the loop that ``j`` comes from."""
    if len(access.index) != 2:
        return None
    first, second = access.index
    if first in (WHOLE, REST):
        axis, item = 1, second
    elif second in (WHOLE, REST):
        axis, item = 0, first
    else:
        return None
    form = linear(item.start) if isinstance(item, SliceValue) else linear(item)
    if isinstance(item, SliceValue):
        stop = linear(item.stop)
        if form is None or stop is None or item.step not in (Const(None), Const(1)):
            return None
        if add(stop, form, -1) != linear(Const(1)):
            return None
    if form is None:
        return None
    for loop in reversed(access.loops):
        if loop.symbol in form.symbols:
            many = loop.trips is None or loop.trips >= MANY
            return (axis, loop) if many and abs(form.coefficient(loop.symbol)) == 1 else None
    return None


def _width(value: Tensor, axis: int) -> int | None:
    """The number of columns of a wide matrix of which ``axis`` is the fastest axis."""
    sizes = value.sizes
    if sizes is None or len(sizes) != 2 or value.assumed or value.devices - {"cpu"}:
        return None
    if value.lib not in ("torch", "numpy") or fastest_axis(value.layout) != axis:
        return None
    width = sizes[axis]
    if not isinstance(width, int) or width < WIDE:
        return None
    total = bytes_of(sizes, value.dtype)
    return width if total is None or total >= LARGE_BYTES else None


def _width_of_items(value: Value) -> int | None:
    """The number of columns where each item of an iterable is a column of a wide matrix."""
    if isinstance(value, Tensor):
        return _width(value, 0)
    if not isinstance(value, Sequence) or not isinstance(value.element, Tensor):
        return None
    column = value.element
    memory, shape = column.layout.memory, column.layout.axes
    if shape is None or len(shape) != 1 or len(memory) != 2 or shape[0].memory != 0:
        return None
    width = memory[1]
    known = not column.assumed and not column.devices - {"cpu"}
    if not known or not isinstance(width, int) or width < WIDE:
        return None
    total = bytes_of(memory, column.dtype)
    return width if total is None or total >= LARGE_BYTES else None
