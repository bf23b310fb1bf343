"""NumPy, and CuPy, which follows it: arrays, their orders, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import Layout, Size
from memlint.analysis.knowledge import compute as to
from memlint.analysis.knowledge import moves, views
from memlint.analysis.knowledge.model import Call
from memlint.analysis.knowledge.numbers import axes_of, integer, shape_of, size_of
from memlint.analysis.knowledge.results import fresh, tensors_in, view
from memlint.analysis.values import MOST_ITEMS, Absent, Const, Sequence, Tensor, Value
from memlint.layout import length_of


def _here(call: Call) -> frozenset[str]:
    return moves.CUDA if call.lib == "cupy" else moves.CPU


def _made(call: Call, sizes: tuple[Size, ...] | None, dtype: str | None) -> Value | None:
    """An array made from nothing, in the ``order`` asked for."""
    if to.out_given(call):
        return None
    layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    order = call.get("order")
    if order == Const("F"):
        layout = moves.ordered(layout, "F")
    elif order not in (Absent(), Const("C"), Const(None)):
        layout = axes.OPAQUE
    return fresh(call, layout, dtype=dtype, devices=_here(call))


def created(call: Call) -> Value | None:
    """``zeros(shape, dtype, order)`` and its kin."""
    given = call.get("shape", "size", at=0)
    default, position = call.options[0], call.options[1]
    assert isinstance(position, int)
    dtype = to.chosen_dtype(call, default if isinstance(default, str) else None, at=position)
    if len(call.args.positional) > position + 1:
        return None
    return _made(call, shape_of((given,)), dtype)


def random(call: Call) -> Value | None:
    """Samples: the shape given by ``size``, or one number where it is not given."""
    at = call.options[0]
    given = call.get("size", at=at if isinstance(at, int) else None)
    if isinstance(given, Absent) or given == Const(None):
        return None
    return _made(call, shape_of((given,)), None)


def random_spread(call: Call) -> Value | None:
    """``numpy.random.rand(*shape)``."""
    if not call.args.positional:
        return None
    return _made(call, tuple(size_of(v) for v in call.args.positional), "float64")


def arange(call: Call) -> Value | None:
    """One axis; its length is known where all bounds are."""
    bounds = [integer(value) for value in call.args.positional[:3]]
    known = [value for value in bounds if value is not None]
    sure = (
        known
        and len(known) == len(bounds)
        and not {"start", "stop", "step"} & set(call.args.keywords)
    )
    length = length_of(range(*known)) if sure and (len(known) < 3 or known[2]) else None
    return _made(call, (length,), to.chosen_dtype(call, None))


def linspace(call: Call) -> Value | None:
    """One axis of ``num`` positions, 50 where it is not given."""
    given = call.get("num", at=2)
    length = 50 if isinstance(given, Absent) else size_of(given)
    scalars = all(isinstance(value, Const) for value in call.args.positional[:2])
    return _made(call, (length,), None) if scalars and len(call.args.positional) < 4 else None


def eye(call: Call) -> Value | None:
    """A square, or ``N`` by ``M``."""
    one, two = call.get("N", "n", at=0), call.get("M", at=1)
    second = one if isinstance(two, Absent) or two == Const(None) else two
    return _made(call, (size_of(one), size_of(second)), to.chosen_dtype(call, "float64"))


def loaded(call: Call) -> Value | None:
    """An array read from a file: as a rule row-major, of unknown shape, on the host."""
    mode = call.get("mmap_mode", at=1)
    if not isinstance(mode, Absent) and mode != Const(None):
        return None
    return fresh(call, axes.dense_any_rank(), devices=_here(call))


def like(call: Call) -> Value | None:
    """``zeros_like`` and its kin: ``order`` is K where it is not given."""
    base = call.tensor
    if base is None or not isinstance(call.get("shape"), Absent):
        return None
    order = call.get("order")
    name = order.value if isinstance(order, Const) else "K" if isinstance(order, Absent) else ""
    layout = moves.ordered(base.layout, str(name))
    at = call.options[0]
    dtype = to.chosen_dtype(call, base.dtype, at=at if isinstance(at, int) else None)
    return fresh(call, layout, of=(base,), dtype=dtype)


def moveaxis(call: Call) -> Value | None:
    """Axes moved to other places, or one rolled to the front."""
    return views.movedim(call)


def at_least(call: Call) -> Value | None:
    """``atleast_2d`` and its kin, on arrays that have the axes already."""
    base, least = call.tensor, call.options[0]
    assert isinstance(least, int)
    if base is None or len(call.args.positional) != 1:
        return None
    if base.layout.rank is None or base.layout.rank < least:
        return view(call, base, axes.OPAQUE)
    return view(call, base, base.layout)


def expand_dims(call: Call) -> Value | None:
    """A new axis of size 1."""
    base, axis = call.tensor, call.get("axis", at=1)
    number = integer(axis)
    if base is None:
        return None
    return view(
        call, base, axes.unsqueeze(base.layout, number) if number is not None else axes.OPAQUE
    )


def broadcast_to(call: Call) -> Value | None:
    """Stretched to a shape, in place."""
    base = call.tensor
    if base is None:
        return None
    sizes = shape_of((call.get("shape", at=1),))
    if sizes is None:
        return view(call, base, axes.expand(base.layout, ()) if base.sizes is None else axes.OPAQUE)
    wide = [axes.NOT_KNOWN if size is None else size for size in sizes]
    return view(call, base, axes.expand(base.layout, wide))


def flip(call: Call) -> Value | None:
    """Axes walked backwards: a view."""
    base = call.tensor
    if base is None:
        return None
    given = call.get("axis", at=1)
    known = axes_of(given)
    if call.options:
        known = (call.options[0],) if isinstance(call.options[0], int) else None
    if known is None and not isinstance(given, Absent):
        return view(call, base, axes.OPAQUE)
    every = range(1 if base.sizes is None else len(base.sizes))
    return view(call, base, _flipped(base.layout, every if known is None else known))


def _flipped(layout: Layout, numbers: Iterable[int]) -> Layout:
    for number in numbers:
        layout = axes.slice_axis(layout, number, None, None, -1)
    return layout


def rotated(call: Call) -> Value | None:
    """``rot90(k)`` in the plane of the first two axes: a view."""
    base, turns = call.tensor, integer(call.get("k", at=1), 1)
    if base is None:
        return None
    if turns is None or not isinstance(call.get("axes", at=2), Absent):
        return view(call, base, axes.OPAQUE)
    layout = base.layout
    match turns % 4:
        case 1:
            layout = axes.transpose(_flipped(layout, (1,)), 0, 1)
        case 2:
            layout = _flipped(layout, (0, 1))
        case 3:
            layout = _flipped(axes.transpose(layout, 0, 1), (1,))
    return view(call, base, layout)


def joined(call: Call) -> Value | None:
    """``concatenate``: row-major where all its parts are."""
    operands = tensors_in(call.args.positional[:1])
    if not operands or to.out_given(call):
        return None
    plain = all(axes.contiguous(operand.layout) is True for operand in operands)
    ranks = {operand.layout.rank for operand in operands}
    rank = ranks.pop() if len(ranks) == 1 else None
    named = call.name == "concatenate"
    sizes = None
    if rank is not None:
        sizes = to.joined_sizes(call, operands, rank) if named else (None,) * rank
    layout: Layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    dtypes = {operand.dtype for operand in operands}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return fresh(call, layout if plain else axes.OPAQUE, of=operands, dtype=dtype)


def joined_rows(call: Call) -> Value | None:
    """``vstack``: vectors become rows first."""
    result = joined(call)
    if not isinstance(result, Tensor) or (result.layout.rank or 0) > 1:
        return result
    plain = axes.contiguous(result.layout) is True
    return replace(result, layout=axes.dense_any_rank() if plain else axes.OPAQUE)


def product(call: Call) -> Value | None:
    """``dot`` and ``matmul``: row-major where the operands are."""
    operands = tensors_in(call.args.positional)
    if len(operands) < 2 or to.out_given(call):
        return None
    if any(axes.contiguous(operand.layout) is not True for operand in operands):
        return to.unknown_layout(call)
    return to.matmul(call) if call.name == "matmul" else to.dense_unknown(call)


def to_host(call: Call) -> Value | None:
    """``cupy.asnumpy`` and ``ndarray.get``: a row-major copy on the host."""
    base = call.tensor
    if base is None:
        return None
    is_dense = axes.contiguous(base.layout) is True
    made = fresh(call, base.layout if is_dense else axes.OPAQUE, of=(base,), dtype=base.dtype)
    return replace(made, lib="numpy", devices=moves.CPU)


def split(call: Call) -> Value | None:
    """``array_split`` and its kin: pieces along an axis."""
    base = call.tensor
    if base is None:
        return None
    fixed = call.options[0] if call.options else None
    axis = fixed if isinstance(fixed, int) else integer(call.get("axis", at=2), 0)
    place = axes.resolve(axis, len(base.sizes)) if base.sizes and axis is not None else None
    size = base.sizes[place] if base.sizes and place is not None else None
    if size is None or type(size) is not int:
        return Sequence("list", None, view(call, base, axes.narrow(base.layout, axis, None)))
    count = integer(call.get("indices_or_sections", at=1))
    if count is None or count < 1 or size % count:
        return Sequence("list", None, view(call, base, axes.OPAQUE))
    piece: Tensor = view(call, base, axes.narrow(base.layout, axis, size // count))
    if count > MOST_ITEMS:
        return Sequence("list", None, piece)
    return Sequence("list", (piece,) * count)
