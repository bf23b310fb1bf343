"""Torch: tensors made from nothing, from numbers, or like another."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.analysis import axes
from memlint.analysis.axes import NOT_KNOWN, NotKnown, Size
from memlint.analysis.knowledge import compute, moves
from memlint.analysis.knowledge.compute import new_array
from memlint.analysis.knowledge.model import Call, Table, rows, table
from memlint.analysis.knowledge.numbers import integer, size_of
from memlint.analysis.knowledge.results import tensors_in, view
from memlint.analysis.values import Absent, Const, Sequence, Tensor, Value
from memlint.layout import length_of


def arange(call: Call) -> Value | None:
    """One axis; its length is known where all bounds are."""
    bounds = [integer(value) for value in call.args.positional[:3]]
    known = [value for value in bounds if value is not None]
    named = {"start", "end", "stop", "step"} & set(call.args.keywords)
    length = None
    if known and len(known) == len(bounds) and not named and (len(known) < 3 or known[2]):
        length = length_of(range(*known))
    return new_array(call, (length,))


def linspace(call: Call) -> Value | None:
    """One axis of ``steps`` positions."""
    steps = call.get("steps", "num", at=2)
    return new_array(call, (size_of(steps),))


def eye(call: Call) -> Value | None:
    """A square, or ``n`` by ``m``."""
    rows_ = size_of(call.get("n", "N", at=0))
    given = call.get("m", "M", at=1)
    absent = isinstance(given, Absent) or given == Const(None)
    return new_array(call, (rows_, rows_ if absent else size_of(given)))


def sized_last(call: Call) -> Value | None:
    """``randint(low, high, size)``, ``normal(mean, std, size)``: the size comes last."""
    given = call.get("size", at=None)
    if isinstance(given, Absent):
        sequences = [v for v in call.args.positional if isinstance(v, Sequence)]
        given = sequences[-1] if sequences else Absent()
    if not isinstance(given, Sequence):
        return None
    sizes = None if given.items is None else tuple(size_of(item) for item in given.items)
    return new_array(call, sizes)


def empty_strided(call: Call) -> Value | None:
    """Sizes and strides given."""
    given = call.get("size", at=0)
    if not isinstance(given, Sequence) or given.items is None:
        return None
    made = new_array(call, tuple(size_of(item) for item in given.items))
    layout = axes.unknown_strides(size_of(item) for item in given.items)
    return None if made is None else compute.with_layout(call, made, layout)


def meshgrid(call: Call) -> Value | None:
    """Vectors stretched over the axes of one another."""
    operands = tensors_in(call.args.positional)
    order = call.get("indexing")
    if not operands or any(operand.layout.rank != 1 for operand in operands):
        return None
    if order not in (Absent(), Const("ij"), Const("xy")):
        return None
    stretched = []
    for place, operand in enumerate(operands):
        layout = operand.layout
        for other in range(len(operands)):
            if other != place:
                layout = axes.unsqueeze(layout, other)
        layout = axes.expand(layout, [_length(one) for one in operands])
        if order == Const("xy") and len(operands) > 1:
            layout = axes.transpose(layout, 0, 1)
        stretched.append(view(call, operand, layout))
    return Sequence("tuple", tuple(stretched))


def _length(operand: Tensor) -> Size | NotKnown:
    size = operand.sizes[0] if operand.sizes else None
    return NOT_KNOWN if size is None else size


def broadcast(call: Call) -> Value | None:
    """``broadcast_tensors``: all of one shape, by views."""
    operands = tensors_in(call.args.positional)
    if not operands or len(operands) != len(call.args.positional):
        return None
    ranks = {operand.layout.rank for operand in operands}
    if None in ranks:
        return None
    rank = max(r for r in ranks if r is not None)
    sizes = [_common(operands, place - rank) for place in range(rank)]
    views = [view(call, operand, axes.expand(operand.layout, sizes)) for operand in operands]
    return Sequence("tuple", tuple(views))


def _common(operands: Iterable[Tensor], place: int) -> Size | NotKnown:
    """The size of an axis, counted from the end, that operands share or are stretched to."""
    shapes = [operand.sizes or () for operand in operands]
    found = {sizes[place] for sizes in shapes if len(sizes) >= -place and sizes[place] != 1}
    known = found - {None}
    if known:
        return known.pop()
    return NOT_KNOWN if found else 1


_FLOAT = (0, "float32")

FUNCTIONS: Table = table(
    rows(
        compute.created,
        "torch.zeros torch.ones torch.rand torch.randn",
        "2, 3",
        "(4, 1, 2)",
        "5",
        "size=(2, 3), dtype=torch.float16",
        "2, 3, device='cpu'",
        options=_FLOAT,
    ),
    rows(
        compute.created,
        "torch.empty",
        "2, 3",
        "(2, 3, 4, 5)",
        "2, 3, dtype=torch.int32",
        "2, 3, 4, 5, memory_format=torch.channels_last",
        options=_FLOAT,
    ),
    rows(compute.created, "torch.full", "(2, 3), 1.0", "(4,), 2, dtype=torch.int64"),
    rows(arange, "torch.arange", "5", "2, 9", "2, 9, 3", "5, dtype=torch.float32"),
    rows(linspace, "torch.linspace torch.logspace", "0, 1, 5", "0, 1, steps=4"),
    rows(eye, "torch.eye", "3", "2, 4", "3, dtype=torch.float64", options=_FLOAT),
    rows(arange, "torch.randperm", "5"),
    rows(
        meshgrid,
        "torch.meshgrid",
        "torch.arange(3), torch.arange(4), indexing='ij'",
        "torch.arange(3), torch.arange(1), torch.arange(4)",
        "torch.arange(3), torch.arange(4), indexing='xy'",
    ),
    rows(broadcast, "torch.broadcast_tensors", "x, x[..., :1]", "x, torch.ones(5, 1, 1, 1)"),
    rows(sized_last, "torch.randint", "0, 9, (2, 3)", "9, (4,)", "9, size=(2, 3)"),
    rows(empty_strided, "torch.empty_strided", "(2, 3), (3, 1)", "(2, 3), (1, 2)"),
    rows(
        compute.like,
        "torch.empty_like torch.zeros_like torch.ones_like torch.rand_like torch.randn_like",
        "x",
        "x, dtype=torch.float16",
        "x, memory_format=torch.contiguous_format",
    ),
    rows(compute.like, "torch.full_like", "x, 2.0"),
    rows(compute.like, "torch.randint_like", "x, 5"),
    rows(
        moves.tensor,
        "torch.tensor",
        "[[1, 2], [3, 4]]",
        "3.0",
        "[1.0, 2.0], dtype=torch.float16",
        "x.numpy()",
    ),
    rows(
        moves.as_tensor,
        "torch.as_tensor torch.asarray",
        "x",
        "x.numpy()",
        "[1.0, 2.0]",
        "x, dtype=torch.float16",
    ),
    rows(moves.shared_with, "torch.from_numpy", "x.numpy()", options=("torch",)),
)
"""Functions by their full names."""

METHODS: Table = table(
    rows(
        compute.created,
        "new_zeros new_ones new_empty",
        "x, 2, 3",
        "x, (4, 2)",
        "x, (2,), dtype=torch.int64",
        options=(1,),
    ),
    rows(compute.created, "new_full", "x, (2, 3), 1.0", options=(1,)),
    rows(compute.new_data, "new_tensor", "x, [[1.0, 2.0]]"),
)
"""Methods of tensors that make others."""
