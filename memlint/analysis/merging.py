"""Whether the shape of a view asks for axes to be merged that a permutation has put apart."""

from __future__ import annotations

from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import Axis, Layout, Size
from memlint.analysis.knowledge.model import Args
from memlint.analysis.knowledge.numbers import shape_of
from memlint.analysis.unit_axes import leaves_unit_axis
from memlint.analysis.values import (
    Absent,
    Object,
    Ref,
    Tensor,
    Unknown,
    Value,
    alternatives,
    made_of,
)

# So many operations are looked back.
_FOLLOWED = 6
_COUNTS = frozenset({".numel", ".nelement", "torch.numel", "math.prod"})
# With ``batch_first`` their results are views of what they compute step by step.
_TRANSPOSING = tuple(
    f"torch.nn.{kind}" for kind in ("LSTM", "GRU", "RNN", "MultiheadAttention", "Transformer")
)


def cannot_view(tensor: Tensor, name: str, args: Args) -> bool:
    """Whether ``tensor.view(*args)`` (or ``view_as``) surely fails because of the order of its
    axes; gaps between elements, which it may have besides, are not counted."""
    if tensor.lib in ("numpy", "cupy") or tensor.born is None or args.open:
        return False
    if _doubtful(tensor):
        return False
    shapes = _shapes(name, args)
    layout = _without_gaps(tensor.layout)
    return bool(shapes) and all(
        shape is not None and axes.reshape(layout, shape)[1] is True for shape in shapes
    )


def _doubtful(tensor: Tensor) -> bool:
    """Whether an axis was squeezed on the way (who does that may know of another of size 1) or
    one of size 1 made that the layout does not tell of, or the layout is that of a module whose
    results are often transposed views."""
    value: Value = tensor
    for _ in range(_FOLLOWED):
        made = made_of(value)
        if made is None or not made.inputs:
            # An attribute of a library's object: nobody said how many axes it has, or how long.
            return isinstance(value, Unknown) and value.origin == "call"
        if made.name.rpartition(".")[2] == "squeeze" or leaves_unit_axis(made, value):
            return True
        value = made.inputs[0]
        if made.name == "call" and isinstance(value, Object):
            return value.cls.startswith(_TRANSPOSING)
    return False


def _shapes(name: str, args: Args) -> list[tuple[Size, ...] | None]:
    if name == ".view_as":
        others = alternatives(args.get("other", 0))
        return [one.sizes if isinstance(one, Tensor) else None for one in others]
    given = args.positional
    if (size := args.get("size")) != Absent():
        given = (size,)
    if not given or any(isinstance(one, Ref) for one in given) or "dtype" in args.keywords:
        return []
    if len(given) == 1:
        return [(None,) if _counts(one) else shape_of((one,)) for one in alternatives(given[0])]
    return [shape_of(given)]


def _counts(value: Value) -> bool:
    """Whether a value is a number of elements."""
    made = made_of(value)
    return made is not None and made.name in _COUNTS


def _without_gaps(layout: Layout) -> Layout:
    """The layout as if every axis were walked from end to end."""
    if layout.axes is None:
        return layout
    places = [axis.memory for axis in layout.axes if axis.memory is not None]
    if len(places) != len(set(places)):
        return axes.OPAQUE
    return (
        axes.OPAQUE
        if any(map(_is_stretched, layout.axes))
        else Layout(tuple(map(_whole, layout.axes)), layout.memory)
    )


def _is_stretched(axis: Axis) -> bool:
    return axis.memory is None and axis.size != 1


def _whole(axis: Axis) -> Axis:
    return axis if axis.memory is None else replace(axis, step=1, whole=True)
