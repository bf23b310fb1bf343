"""Differences of all pairs of rows: ``a[:, None] - b[None]``."""

from __future__ import annotations

from memlint.analysis.chains import given, integer, mades, short
from memlint.analysis.copies_along_axes import is_newaxis
from memlint.analysis.values import Absent, Const, Made, Sequence, Tensor, Value, alternatives

REDUCTIONS = frozenset({"sum", "norm", "mean", "vector_norm"})
ELEMENTWISE = frozenset({"pow", "power", "square", "abs", "absolute", "sqrt", "exp", "fabs"})
# The columns of all pairs of rows lie along the last of three axes.
COLUMNS = (-1, 2)
FEW_COLUMNS = 4
FEW_PAIRS = 1 << 16


def difference(reduction: Made) -> Made | None:
    """The difference of all pairs of rows that an operation sums up along their columns."""
    if short(reduction.name) not in REDUCTIONS or not given(reduction):
        return None
    if not _over_columns(reduction):
        return None
    value = given(reduction)[0]
    # A sum of bare differences is a difference of sums.
    measured = "norm" in short(reduction.name)
    for _ in range(4):
        made = next(mades(value), None)
        if made is None or not given(made):
            return None
        name = short(made.name)
        if name in ("subtract", "sub"):
            return made if measured and _pairs(made) else None
        if name in ("multiply", "mul"):
            if len(made.inputs) != 2 or made.inputs[0] is not made.inputs[1]:
                return None
        elif name not in ELEMENTWISE:
            return None
        value, measured = given(made)[0], True
    return None


def _over_columns(reduction: Made) -> bool:
    place = 2 if short(reduction.name) == "norm" else 1
    given_axes = [value for key, value in reduction.keywords if key in ("dim", "axis")]
    axis = given_axes[0] if given_axes else reduction.get("", place)
    if isinstance(axis, Sequence) and axis.items is not None and len(axis.items) == 1:
        axis = axis.items[0]
    return integer(axis) in COLUMNS


def _pairs(made: Made) -> bool:
    """Whether one operand has a new second axis, and the other does not."""
    if len(made.inputs) != 2:
        return False
    axes = [_new_axis(one) for one in made.inputs]
    return (axes[0] == 1 and axes[1] in (0, None) and _may_be_matrix(made.inputs[1], axes[1])) or (
        axes[1] == 1 and axes[0] in (0, None) and _may_be_matrix(made.inputs[0], axes[0])
    )


def _new_axis(value: Value) -> int | None:
    """The new axis of ``x[:, None]`` or ``x.unsqueeze(1)``."""
    made = next(mades(value), None)
    if made is None:
        return None
    name = short(made.name)
    if name in ("unsqueeze", "expand_dims"):
        return integer(made.get("dim", 1) if made.get("axis") == Absent() else made.get("axis"))
    if name == "getitem":
        places = [index for index, key in enumerate(made.inputs[1:]) if is_newaxis(key)]
        if len(places) == 1 and all(
            is_newaxis(key) or isinstance(key, Sequence) or key == Const("...")
            for key in made.inputs[1:]
        ):
            return places[0]
    if name == "expand" or name == "repeat":
        return _new_axis(given(made)[0])
    return None


def _may_be_matrix(value: Value, new: int | None) -> bool:
    """Whether the operand without a second new axis may have a row for each pair: one vector
    that is taken from all rows makes no pairs."""
    if new == 0:
        return True
    ranks = {one.layout.rank for one in alternatives(value) if isinstance(one, Tensor)}
    return 2 in ranks or not ranks


def is_small(made: Made) -> bool:
    """Whether there are known to be few columns or few pairs."""
    pairs = 1
    for value in made.inputs:
        sizes = next((one.sizes for one in alternatives(value) if isinstance(one, Tensor)), None)
        if sizes is None:
            pairs = FEW_PAIRS
            continue
        if sizes and isinstance(sizes[-1], int) and sizes[-1] <= FEW_COLUMNS:
            return True
        for size in sizes[:-1]:
            pairs *= size if isinstance(size, int) else FEW_PAIRS
    return pairs < FEW_PAIRS
