"""Transfers of operations that look at the same storage in another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import NOT_KNOWN, OPAQUE, Layout, NotKnown, Size
from memlint.analysis.knowledge.model import Call
from memlint.analysis.knowledge.numbers import axes_of, integer, integers, shape_of, size_of
from memlint.analysis.knowledge.results import perhaps_view, view
from memlint.analysis.values import MOST_ITEMS, Absent, Sequence, Tensor, Value


def same(call: Call) -> Value | None:
    """The argument itself, or another name for all of its storage."""
    base = call.tensor
    return None if base is None else view(call, base, base.layout)


def transpose(call: Call) -> Value | None:
    """Torch: two axes exchanged.  Numpy: any order, by default reversed."""
    base = call.tensor
    if base is None:
        return None
    order = call.rest("axes")
    numpy_like = call.lib in ("numpy", "cupy") or "axes" in call.args.keywords
    if numpy_like or (not base.lib and order is not None and len(order) not in (1, 2)):
        given = order is not None and len(order) > 0 and not _is_none(order)
        if order is None:
            return view(call, base, OPAQUE)
        found = integers(order) or ()
        layout = axes.permute(base.layout, found) if given else axes.reverse(base.layout)
        return view(call, base, layout)
    one, two = call.get("dim0", "axis0", at=1), call.get("dim1", "axis1", at=2)
    return view(call, base, axes.transpose(base.layout, integer(one), integer(two)))


def _is_none(values: tuple[Value, ...]) -> bool:
    return len(values) == 1 and getattr(values[0], "value", 0) is None


def swapaxes(call: Call) -> Value | None:
    """Two axes exchanged."""
    base = call.tensor
    if base is None:
        return None
    one = integer(call.get("axis0", "axis1", "dim0", at=1))
    two = integer(call.args.get("axis2" if "axis2" in call.args.keywords else "axis1", 2))
    two = integer(call.get("dim1", at=2)) if "dim1" in call.args.keywords else two
    return view(call, base, axes.transpose(base.layout, one, two))


def permute(call: Call) -> Value | None:
    """The axes in a given order."""
    base = call.tensor
    if base is None:
        return None
    order = integers(call.rest("dims"))
    layout = OPAQUE if order is None else axes.permute(base.layout, order)
    return view(call, base, layout)


def reverse(call: Call) -> Value | None:
    """``t()`` and ``.T``: all axes in reverse order."""
    base = call.tensor
    if base is None:
        return None
    two_axes = base.lib == "torch" or call.name == "t"
    layout = axes.t(base.layout) if two_axes else axes.reverse(base.layout)
    return view(call, base, layout)


def last_two(call: Call) -> Value | None:
    """``.mT``: the last two axes exchanged."""
    base = call.tensor
    return None if base is None else view(call, base, axes.transpose(base.layout, -2, -1))


def movedim(call: Call) -> Value | None:
    """Axes moved to other places."""
    base = call.tensor
    if base is None:
        return None
    source = axes_of(call.get("source", at=1))
    target = axes_of(call.get("destination", at=2))
    if source is None or target is None:
        return view(call, base, OPAQUE)
    return view(call, base, axes.movedim(base.layout, source, target))


def expand(call: Call) -> Value | None:
    """``expand(*sizes)`` and ``broadcast_to(shape)``."""
    base = call.tensor
    if base is None:
        return None
    name = "size" if "size" in call.args.keywords else "shape"
    given = call.rest(name)
    if given is None or (len(given) == 1 and shape_of(given) is None):
        layout = axes.expand(base.layout, ()) if base.layout.axes is None else OPAQUE
        return view(call, base, layout)
    sizes = [_size_or_not_known(value) for value in given]
    return view(call, base, axes.expand(base.layout, sizes))


def _size_or_not_known(value: Value) -> Size | NotKnown:
    size = size_of(value)
    return NOT_KNOWN if size is None else size


def expand_as(call: Call) -> Value | None:
    """``expand_as(other)``."""
    base, other = call.tensor, call.get("other", at=1)
    if base is None:
        return None
    if not isinstance(other, Tensor) or other.sizes is None:
        return view(
            call, base, axes.expand(base.layout, ()) if base.layout.axes is None else OPAQUE
        )
    sizes = [NOT_KNOWN if size is None else size for size in other.sizes]
    return view(call, base, axes.expand(base.layout, sizes))


def narrow(call: Call) -> Value | None:
    """``narrow(dim, start, length)``."""
    base = call.tensor
    if base is None:
        return None
    axis = integer(call.get("dim", at=1))
    length = size_of(call.get("length", at=3))
    return view(call, base, axes.narrow(base.layout, axis, length))


def select(call: Call) -> Value | None:
    """``select(dim, index)``."""
    base = call.tensor
    if base is None:
        return None
    return view(call, base, axes.select(base.layout, integer(call.get("dim", at=1))))


def squeeze(call: Call) -> Value | None:
    """Axes of size 1 taken out."""
    base = call.tensor
    if base is None:
        return None
    given = call.get("dim", "axis", at=1)
    if isinstance(given, Absent):
        return view(call, base, axes.squeeze(base.layout))
    named = axes_of(given)
    layout = OPAQUE if named is None else axes.squeeze(base.layout, named)
    return view(call, base, layout)


def unsqueeze(call: Call) -> Value | None:
    """A new axis of size 1."""
    base = call.tensor
    if base is None:
        return None
    axis = integer(call.get("dim", "axis", at=1))
    return view(call, base, axes.unsqueeze(base.layout, axis))


def reshape(call: Call) -> Value | None:
    """``view`` and ``reshape``; numpy's ``order`` is C where it is not given."""
    base = call.tensor
    if base is None:
        return None
    order = call.get("order")
    if not isinstance(order, Absent) and getattr(order, "value", None) != "C":
        return perhaps_view(call, base, OPAQUE, None)
    given = call.rest(
        next((n for n in ("shape", "newshape", "size") if n in call.args.keywords), "")
    )
    if call.name == "view" and given and getattr(given[0], "name", None) is not None:
        return None
    sizes = shape_of(given)
    if sizes is None:
        return perhaps_view(call, base, *_unknown_shape(base.layout))
    layout, copies = axes.reshape(base.layout, sizes)
    return perhaps_view(call, base, layout, copies)


def _unknown_shape(layout: Layout) -> tuple[Layout, bool | None]:
    """Reshaped to a shape of which not even the rank is known."""
    if axes.contiguous(layout) is True:
        return axes.dense_any_rank(), False
    return OPAQUE, None


def reshape_as(call: Call) -> Value | None:
    """``view_as(other)`` and ``reshape_as(other)``."""
    base, other = call.tensor, call.get("other", at=1)
    if base is None:
        return None
    if not isinstance(other, Tensor) or other.sizes is None:
        return perhaps_view(call, base, *_unknown_shape(base.layout))
    layout, copies = axes.reshape(base.layout, other.sizes)
    return perhaps_view(call, base, layout, copies)


def flatten(call: Call) -> Value | None:
    """``flatten(start_dim, end_dim)`` of torch."""
    base = call.tensor
    if base is None:
        return None
    start = integer(call.get("start_dim", at=1), 0)
    end = integer(call.get("end_dim", at=2), -1)
    if start is None or end is None:
        return perhaps_view(call, base, *_unknown_shape(base.layout))
    layout, copies = axes.flatten(base.layout, start, end)
    return perhaps_view(call, base, layout, copies)


def unflatten(call: Call) -> Value | None:
    """One axis split into several."""
    base = call.tensor
    axis = integer(call.get("dim", at=1))
    if base is None:
        return None
    sizes = shape_of((call.get("sizes", "unflattened_size", at=2),))
    if axis is None or sizes is None:
        return view(call, base, OPAQUE)
    layout, copies = axes.unflatten(base.layout, axis, sizes)
    return perhaps_view(call, base, layout, copies)


def diagonal(call: Call) -> Value | None:
    """The diagonal of two axes."""
    base = call.tensor
    if base is None:
        return None
    one = integer(call.get("dim1", "axis1", at=2), 0)
    two = integer(call.get("dim2", "axis2", at=3), 1)
    offset = integer(call.get("offset", at=1), 0)
    return view(call, base, axes.diagonal(base.layout, one, two, offset))


def unfold(call: Call) -> Value | None:
    """Sliding windows."""
    base = call.tensor
    if base is None:
        return None
    axis = integer(call.get("dimension", at=1))
    size, step = size_of(call.get("size", at=2)), size_of(call.get("step", at=3))
    return view(call, base, axes.unfold(base.layout, axis, size, step))


def strided(call: Call) -> Value | None:
    """Any strides at all over the same storage."""
    base = call.tensor
    if base is None:
        return None
    sizes = shape_of((call.get("size", "shape", at=1),))
    return view(call, base, OPAQUE if sizes is None else axes.unknown_strides(sizes))


def chunk(call: Call) -> Value | None:
    """``chunk(n, dim)``: pieces of one length, the last one perhaps shorter."""
    count = integer(call.get("chunks", at=1))

    def lengths(size: Size) -> list[int] | None:
        if type(size) is not int or count is None or count < 1:
            return None
        length = -(-size // count) if size else 0
        return _pieces(size, length)

    known = count if count is not None and count > 0 else None
    return _cut_up(call, lengths, known)


def _pieces(size: int, length: int) -> list[int] | None:
    if length < 1 or size // length > MOST_ITEMS:
        return None
    return [min(length, size - start) for start in range(0, size, length)]


def split(call: Call) -> Value | None:
    """``split(size or sizes, dim)`` of torch."""
    given = call.get("split_size_or_sections", "split_size", at=1)
    if isinstance(given, Sequence):
        fixed = None if given.items is None else [size_of(item) for item in given.items]
        return _cut_up(call, lambda size: fixed, None)
    length = integer(given)

    def lengths(size: Size) -> list[int] | None:
        if type(size) is not int or length is None:
            return None
        return _pieces(size, length)

    return _cut_up(call, lengths, None)


def _cut_up(
    call: Call, lengths: Callable[[Size], list[int] | list[Size] | None], count: int | None
) -> Value | None:
    base = call.tensor
    if base is None:
        return None
    if count == 1:
        return Sequence("tuple", (view(call, base, base.layout),))
    axis = integer(call.get("dim", at=2), 0)
    size: Size = None
    if base.sizes is not None and axis is not None and -len(base.sizes) <= axis < len(base.sizes):
        size = base.sizes[axis]
    found = lengths(size)
    if found is None:
        piece = view(call, base, axes.narrow(base.layout, axis, None))
        sure = not (base.layout.loose is not None and base.layout.loose.units)
        few = count is not None and count <= MOST_ITEMS
        items = (piece,) * count if count is not None and few and sure else None
        return Sequence("tuple", items, piece)
    pieces = tuple(view(call, base, axes.narrow(base.layout, axis, one)) for one in found)
    return Sequence("tuple", pieces)


def tensor_split(call: Call) -> Value | None:
    """``tensor_split(n or places, dim)``: pieces whose lengths may differ by one."""
    count = integer(call.get("indices_or_sections", "sections", at=1))
    return _cut_up(call, lambda size: None, count if count is not None and count > 0 else None)


def unbind(call: Call) -> Value | None:
    """All positions of an axis."""
    base = call.tensor
    if base is None:
        return None
    axis = integer(call.get("dim", at=1), 0)
    piece = view(call, base, axes.select(base.layout, axis))
    return Sequence("tuple", None, piece)


def as_complex(call: Call) -> Value | None:
    """Pairs of the last axis as complex numbers."""
    base = call.tensor
    if base is None:
        return None
    layout = base.layout
    if axes.contiguous(layout) is not True:
        layout = OPAQUE
    elif layout.sizes is not None:
        layout = axes.dense(layout.sizes[:-1])
    dtype = "complex128" if base.dtype == "float64" else "complex64"
    return replace(view(call, base, layout), dtype=dtype)


def as_real(call: Call) -> Value | None:
    """Complex numbers as pairs along a new last axis."""
    base = call.tensor
    if base is None:
        return None
    layout = base.layout
    if axes.contiguous(layout) is not True:
        layout = OPAQUE
    elif layout.sizes is not None:
        layout = axes.dense((*layout.sizes, 2))
    dtype = "float64" if base.dtype == "complex128" else "float32"
    return replace(view(call, base, layout), dtype=dtype)
