"""Transfers of operations whose result is an array of its own."""

from __future__ import annotations

from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import OPAQUE, Layout, Size
from memlint.analysis.knowledge.kinds import device_types, dtype_of
from memlint.analysis.knowledge.model import Call
from memlint.analysis.knowledge.numbers import axes_of, flag, integer, shape_of
from memlint.analysis.knowledge.results import fresh, perhaps_view, tensors_in
from memlint.analysis.linear import linear
from memlint.analysis.values import (
    Absent,
    Const,
    Ref,
    Sequence,
    Tensor,
    Value,
)

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def chosen_dtype(call: Call, default: str | None, at: int | None = None) -> str | None:
    """The ``dtype`` that is asked for, else ``default``."""
    given = call.get("dtype", at=at)
    if isinstance(given, Absent) or given == Const(None):
        return default
    return dtype_of(given)


def chosen_devices(call: Call, default: frozenset[str]) -> frozenset[str]:
    """The ``device`` that is asked for, else ``default``."""
    given = call.get("device")
    if isinstance(given, Absent) or given == Const(None):
        return default
    return device_types(given)


def out_given(call: Call) -> bool:
    """Whether the result goes into an array of the caller's."""
    given = call.get("out")
    return not isinstance(given, Absent) and given != Const(None)


def elementwise(call: Call) -> Value | None:
    """Element by element; ``options`` may name the dtype of the result."""
    operands = _operands(call)
    if not operands or out_given(call):
        return None
    numpy_like = call.lib in ("numpy", "cupy")
    if numpy_like and not isinstance(call.get("order"), Absent):
        return None
    decided = _first_decides(call, operands, numpy_like)
    layouts = [operand.layout for operand in operands]
    if decided and layouts[0].axes is not None:
        layouts = [layout for layout in layouts if layout.axes is not None]
    layout = axes.elementwise(layouts, numpy_like)
    if _unseen_operand(call) and not decided:
        layout = OPAQUE
    dtype = call.options[0] if call.options else _common_dtype(call, operands)
    if not isinstance(call.get("dtype"), Absent):
        dtype = dtype_of(call.get("dtype"))
    # A tensor that is a number goes along to where the other operand lies.
    settled = not _unseen_operand(call) or any(one.devices and one.layout.rank for one in operands)
    dtype = dtype if isinstance(dtype, str) else None
    devices = None if settled else frozenset[str]()
    return fresh(call, layout, of=operands, dtype=dtype, devices=devices)


def complex_result(call: Call) -> Value | None:
    """Complex numbers of two arrays of floats; single ones where that is not known."""
    result = elementwise(call)
    if not isinstance(result, Tensor):
        return None
    return replace(result, dtype="complex128" if result.dtype == "float64" else "complex64")


def _operands(call: Call) -> list[Tensor]:
    given = (*call.args.positional, *call.args.keywords.values())
    return [value for value in given if isinstance(value, Tensor)]


def _unseen_operand(call: Call) -> bool:
    """Whether an argument that is not known may be an array that takes part."""
    return any(
        not isinstance(value, Tensor | Const | Ref | Absent) and linear(value) is None
        for value in (*call.args.positional, *call.args.keywords.values())
    )


def _first_decides(call: Call, operands: list[Tensor], numpy_like: bool) -> bool:
    """Whether the first operand settles the order of the axes, whatever the others are."""
    first = operands[0]
    if first is not call.first or (numpy_like and not axes.natural(first.layout)):
        return False
    if first.sizes is None:
        return first.layout.loose is not None and not first.layout.loose.broadcast
    return first.sizes != () and all(
        axis.size != 1 and axis.step != 0 for axis in first.layout.axes or ()
    )


def _common_dtype(call: Call, operands: list[Tensor]) -> str | None:
    dtypes = {operand.dtype for operand in operands}
    only = dtypes.pop()
    numbers = [
        type(v.value)
        for v in call.args.positional
        if isinstance(v, Const) and isinstance(v.value, int | float | complex)
    ]
    if dtypes or only is None or complex in numbers:
        return None
    if numbers and only not in _FLOATS:
        return None
    return only


def float_result(call: Call) -> Value | None:
    """Element by element, with a result of the operand's dtype where that is a float."""
    result = elementwise(call)
    if isinstance(result, Tensor) and result.dtype not in _FLOATS:
        return fresh(call, result.layout, of=_operands(call))
    return result


def like(call: Call) -> Value | None:
    """``zeros_like`` and its kin: the strides kept, unless a memory format is asked for."""
    base = call.tensor
    if base is None:
        return None
    layout = formatted(call, axes.preserved(base.layout))
    devices = chosen_devices(call, base.devices)
    return fresh(call, layout, of=(base,), dtype=chosen_dtype(call, base.dtype), devices=devices)


def formatted(call: Call, otherwise: Layout, dense_default: bool = False) -> Layout:
    """The layout that ``memory_format`` asks for; ``otherwise`` for preserve_format."""
    given = call.get("memory_format")
    if isinstance(given, Absent):
        return otherwise
    name = given.name.rpartition(".")[2] if isinstance(given, Ref) else ""
    if name == "preserve_format" and not dense_default:
        return otherwise
    sizes = otherwise.sizes
    if name == "contiguous_format":
        return axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    if sizes is None:
        rank = {"channels_last": 4, "channels_last_3d": 5}.get(name)
        return OPAQUE if rank is None else axes.channels_last((None,) * rank)
    if name in ("channels_last", "channels_last_3d"):
        return axes.channels_last(sizes)
    return axes.unknown_strides(sizes)


def reduction(call: Call) -> Value | None:
    """Some axes, or all, reduced; ``options`` may name the dtype of the result."""
    base = call.tensor
    if base is None or out_given(call):
        return None
    sizes = reduced_sizes(call, base)
    layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    if call.lib in ("numpy", "cupy") and not (sizes is not None and len(sizes) < 2):
        layout = layout if axes.contiguous(base.layout) is True else OPAQUE
    default = call.options[0] if call.options else None
    kept = base.dtype if base.dtype in _FLOATS else None
    dtype = chosen_dtype(call, default if isinstance(default, str) else kept)
    return fresh(call, layout, of=(base,), dtype=dtype)


def reduced_sizes(call: Call, base: Tensor) -> tuple[Size, ...] | None:
    """The shape after a reduction over ``dim`` or ``axis``."""
    keep = flag(call.get("keepdim", "keepdims"), False)
    given = call.get("dim", "axis", at=1)
    if isinstance(given, Absent) or given == Const(None):
        if keep is False:
            return ()
        return None if base.sizes is None or keep is None else (1,) * len(base.sizes)
    named = axes_of(given)
    if named is None or base.sizes is None or keep is None or len(call.args.positional) > 2:
        return None
    rank = len(base.sizes)
    if rank == 0:
        return ()
    gone = {axes.resolve(axis, rank) for axis in named}
    if None in gone:
        return None
    kept = enumerate(base.sizes)
    if keep:
        return tuple(1 if number in gone else size for number, size in kept)
    return tuple(size for number, size in kept if number not in gone)


def pair(call: Call) -> Value | None:
    """``max(dim)`` and its kin: values and indices, or one value where no axis is named."""
    given = call.get("dim", at=1)
    if isinstance(given, Tensor):
        return elementwise(call)
    values = reduction(call)
    if isinstance(given, Absent) or not isinstance(values, Tensor):
        return values
    return Sequence("tuple", (values, fresh(call, values.layout, of=(values,), dtype="int64")))


def dense_same(call: Call) -> Value | None:
    """Row-major, of the same shape, whatever the strides of the operand."""
    base = call.tensor
    if base is None or out_given(call):
        return None
    layout = axes.dense_any_rank() if base.sizes is None else axes.dense(base.sizes)
    kept = base.dtype if base.dtype in _FLOATS or "any" in call.options else None
    return fresh(call, layout, of=(base,), dtype=chosen_dtype(call, kept))


def dense_unknown(call: Call) -> Value | None:
    """Row-major, of a shape that is not followed."""
    operands = tensors_in((*call.args.positional, *call.args.keywords.values()))
    if not operands or out_given(call):
        return None
    dtype = call.options[0] if call.options else None
    return fresh(
        call, axes.dense_any_rank(), of=operands, dtype=dtype if isinstance(dtype, str) else None
    )


def dense_vector(call: Call) -> Value | None:
    """One axis, of a length that is not followed."""
    base = call.tensor
    return None if base is None else fresh(call, axes.dense((None,)), of=(base,), dtype=base.dtype)


def unknown_layout(call: Call) -> Value | None:
    """An array of which only the place is known."""
    operands = tensors_in(call.args.positional)
    return fresh(call, OPAQUE, of=operands) if operands and not out_given(call) else None


def nothing_known(call: Call) -> Value | None:
    """An array of which only the place is known, and which may be a view of an argument."""
    result = unknown_layout(call)
    return replace(result, site=None) if isinstance(result, Tensor) else None


def dropout(call: Call) -> Value | None:
    """Element by element in training, else the argument itself."""
    base = call.tensor
    if base is None:
        return None
    training = flag(call.get("training", at=2), True)
    probability = call.get("p", at=1)
    drops = isinstance(probability, Absent) or (
        isinstance(probability, Const) and probability.value not in (0, 0.0)
    )
    if training is False:
        return perhaps_view(call, base, base.layout, False)
    if training and drops:
        return fresh(call, axes.preserved(base.layout), of=(base,), dtype=base.dtype)
    same = axes.preserved(base.layout) == base.layout
    return perhaps_view(call, base, base.layout if same else OPAQUE, None)


def scalar(call: Call) -> Value | None:
    """A single number as an array without axes."""
    operands = tensors_in(call.args.positional)
    named = call.get("reduction")
    if not operands or not isinstance(named, Absent):
        return None
    return fresh(call, axes.dense(()), of=operands)


def matmul(call: Call) -> Value | None:
    """Matrix products: row-major, of the operands' sizes."""
    left, right = call.first, call.get("other", "mat2", "vec", "b", "vec2", at=1)
    if not isinstance(left, Tensor) or out_given(call):
        return None
    operands = tensors_in((left, right))
    sizes = _product_sizes(left, right) if isinstance(right, Tensor) else None
    layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    dtypes = {operand.dtype for operand in operands}
    dtype = dtypes.pop() if len(dtypes) == 1 and len(operands) == 2 else None
    return fresh(call, layout, of=operands, dtype=dtype)


def _product_sizes(left: Tensor, right: Tensor) -> tuple[Size, ...] | None:
    one, two = left.sizes, right.sizes
    if one is None or two is None or len(one) < 2 or len(two) < 2:
        return None
    batch = axes.broadcast_sizes([one[:-2], two[:-2]])
    return None if batch is None else (*batch, one[-2], two[-1])


def stack(call: Call) -> Value | None:
    """Arrays along a new axis: row-major."""
    operands = tensors_in(call.args.positional[:1])
    parts = call.first
    if not operands or out_given(call):
        return None
    axis = integer(call.get("dim", "axis", at=1), 0)
    sizes = operands[0].sizes
    layout = axes.dense_any_rank()
    plain = all(_plainly_dense(operand.layout) for operand in operands)
    if not plain and (call.lib != "torch" or sizes is None or len(sizes) > 3):
        layout = OPAQUE
    elif isinstance(parts, Sequence) and parts.items is not None and sizes is not None:
        place = None if axis is None else axes.resolve(axis, len(sizes) + 1)
        if place is not None:
            layout = axes.dense((*sizes[:place], len(parts.items), *sizes[place:]))
    dtypes = {operand.dtype for operand in operands}
    return fresh(call, layout, of=operands, dtype=dtypes.pop() if len(dtypes) == 1 else None)


def _plainly_dense(layout: Layout) -> bool:
    """Dense, and by its strides not channels last as well, which an axis of size 1 may make
    of an array of four or five axes."""
    sizes = layout.sizes
    both = sizes is not None and len(sizes) in (4, 5) and 1 in sizes
    return axes.contiguous(layout) is True and not both


def join_along(call: Call) -> Value | None:
    """``cat``: row-major where all its parts are; else in the format of the parts."""
    operands = tensors_in(call.args.positional[:1])
    if not operands or out_given(call):
        return None
    dtypes = {operand.dtype for operand in operands}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    all_dense = all(_plainly_dense(operand.layout) for operand in operands)
    ranks = {operand.layout.rank for operand in operands}
    rank = ranks.pop() if len(ranks) == 1 else None
    if all_dense or (rank is not None and rank < 4 and call.lib == "torch"):
        sizes = None if rank is None else joined_sizes(call, operands, rank)
        layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
        return fresh(call, layout, of=operands, dtype=dtype)
    return fresh(call, OPAQUE, of=operands, dtype=dtype)


def joined_sizes(call: Call, operands: list[Tensor], rank: int) -> tuple[Size, ...]:
    """The sizes of what is joined along an axis, as far as they are known."""
    name = next((key for key in ("dim", "axis") if key in call.args.keywords), "dim")
    number = integer(call.args.get(name, 1), 0)
    place = None if number is None else axes.resolve(number, rank)
    parts = call.args.positional[0]
    if place is None or not isinstance(parts, Sequence) or parts.items != tuple(operands):
        return (None,) * rank
    columns = list(zip(*(operand.sizes or () for operand in operands), strict=True))
    if len(columns) != rank:
        return (None,) * rank
    along = [size for size in columns[place] if isinstance(size, int)]
    joined = sum(along) if len(along) == len(operands) else None
    return tuple(
        joined if at == place else column[0] if len(set(column)) == 1 else None
        for at, column in enumerate(columns)
    )


def created(call: Call) -> Value | None:
    """``zeros(*size)`` and its kin."""
    at = call.options[0] if call.options else 0
    assert isinstance(at, int)
    name = next((n for n in ("size", "shape") if n in call.args.keywords), "")
    if name:
        sizes = shape_of((call.args.keywords[name],))
    elif call.name in ("full", "new_full"):
        sizes = shape_of(call.args.positional[at : at + 1])
    else:
        sizes = shape_of(call.args.positional[at:])
    return new_array(call, sizes)


def new_data(call: Call) -> Value | None:
    """``new_tensor(data)``: row-major, of a shape that is not followed."""
    base = call.tensor
    return None if base is None else fresh(call, axes.dense_any_rank(), dtype=None)


def with_layout(call: Call, value: Value, layout: Layout) -> Value:
    """The same array in another layout."""
    if not isinstance(value, Tensor):
        return value
    return fresh(call, layout, dtype=value.dtype, devices=value.devices, pinned=value.pinned)


def new_array(call: Call, sizes: tuple[Size, ...] | None) -> Value | None:
    """A torch tensor made from nothing, with the keywords that all makers share."""
    if out_given(call):
        return None
    layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    layout = formatted(call, layout)
    if call.get("layout") not in (Absent(), Ref("torch.strided")):
        return None
    pinned = flag(call.get("pin_memory"), False)
    base = call.tensor
    default = call.options[1] if len(call.options) > 1 else None
    dtype = chosen_dtype(call, default if isinstance(default, str) else None)
    here = frozenset({"cpu"}) if base is None or not call.name.startswith("new_") else base.devices
    if base is not None and call.name.startswith("new_") and dtype is None:
        dtype = chosen_dtype(call, base.dtype)
    return fresh(call, layout, dtype=dtype, devices=chosen_devices(call, here), pinned=pinned)
