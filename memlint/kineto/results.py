"""What an operator has given, as far as its arguments and what ran in it tell.

A trace has the arguments of operators, not their results.
"""

from __future__ import annotations

from math import prod

from memlint.kineto.arguments import Given, Tensor, row_major
from memlint.kineto.walk import Run
from memlint.layout import Strided, is_non_overlapping_and_dense
from memlint.tracer.operands import ELEMENTWISE, ITEMSIZES

REORDERING = frozenset({"t", "transpose", "permute", "as_strided", "unfold"})
"""Views that have the elements of what they view in another order."""
_COPIES = frozenset({"clone", "_to_copy"})
_SHAPED = frozenset({"view", "_unsafe_view", "_reshape_alias"})
_NUMBERED = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16", 3: "int32", 4: "int64",
             11: "bool", 0: "uint8", 1: "int8", 2: "int16"}  # fmt: skip
"""The types of elements by their numbers in PyTorch, ``c10::ScalarType``."""


def result_of(run: Run, short: str) -> Tensor | None:
    """The result of an operator; ``None`` where it is not known."""
    first = run.given.tensors[0] if run.given.tensors else None
    if first is None:
        return None
    if short in _COPIES:
        return _copied(run, first)
    if short in _SHAPED:
        return _viewed(first, run.given)
    if short in ELEMENTWISE:
        return _computed(run.given)
    if short in _PRODUCTS:
        return _multiplied(run.given, _PRODUCTS[short])
    views = [one.given for one in run.inner if one.name == "aten::as_strided"]
    if short == "as_strided":
        views = [run.given]
    if not views or short not in _VIEWS:
        return None
    shape, strides = views[-1].sizes(1), views[-1].sizes(2)
    if shape is None or strides is None or len(shape) != len(strides):
        return None
    return Tensor(Strided(shape, strides, first.array.itemsize), first.dtype)


_VIEWS = REORDERING | {"expand", "select", "slice", "unsqueeze", "squeeze", "diagonal", "narrow"}


_PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
"""Products of matrices, by the place of the first factor among the arguments."""


def _multiplied(given: Given, first: int) -> Tensor | None:
    """The shape of a product; how it lies in memory is left open."""
    left, right = (*given.tensors, None, None)[first : first + 2]
    if left is None or right is None or min(len(left.array.shape), len(right.array.shape)) < 2:
        return None
    shape = (*left.array.shape[:-1], right.array.shape[-1])
    return Tensor(Strided(shape, (), left.array.itemsize), left.dtype)


def _copied(run: Run, first: Tensor) -> Tensor | None:
    """A copy: where ``copy_`` has written to."""
    written = [one.given.tensors[0] for one in run.inner if one.name == "aten::copy_"]
    if written and written[-1] is not None:
        return written[-1]
    if run.name == "aten::_to_copy" and run.given.value(1).isdigit():
        dtype = _NUMBERED.get(int(run.given.value(1)), first.dtype)
        return Tensor(Strided(first.array.shape, (), ITEMSIZES[dtype]), dtype)
    return None


def _viewed(first: Tensor, given: Given) -> Tensor | None:
    """A dense array in another shape; where what is viewed is not dense, the strides are left
    open."""
    shape = given.sizes(1)
    if shape is None or not first.array.strides:
        return None
    if shape.count(-1) == 1:
        known = -prod(shape)
        size = first.array.elements // known if known else 0
        shape = tuple(size if one == -1 else one for one in shape)
    if prod(shape) != first.array.elements:
        return None
    dense = row_major(first.array.shape) == first.array.strides
    strides = row_major(shape) if dense else ()
    return Tensor(Strided(shape, strides, first.array.itemsize), first.dtype)


_WIDENING = ("float16", "float32", "float64")


def _computed(given: Given) -> Tensor | None:
    """What an elementwise operator gives; its order, where all operands agree on it."""
    operands = [one for one in given.tensors if one is not None]
    deciding = [one for one in operands if one.array.shape] or operands
    dtypes = {one.dtype for one in deciding}
    if len(dtypes) > 1 and not dtypes <= set(_WIDENING):
        return None
    dtype = max(dtypes, key=_WIDENING.index) if len(dtypes) > 1 else next(iter(dtypes))
    shape = _broadcast([one.array.shape for one in deciding])
    if shape is None:
        return None
    whole = {one.array.strides for one in deciding if one.array.shape == shape}
    strides: tuple[int, ...] = ()
    if len(whole) == 1:
        candidate = Strided(shape, whole.pop(), ITEMSIZES[dtype])
        if candidate.strides and is_non_overlapping_and_dense(candidate):
            strides = candidate.strides
    return Tensor(Strided(shape, strides, ITEMSIZES[dtype]), dtype)


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    rank = max(map(len, shapes))
    filled = [(1,) * (rank - len(one)) + one for one in shapes]
    sizes = []
    for column in zip(*filled, strict=True):
        wide = {one for one in column if one != 1}
        if len(wide) > 1:
            return None
        sizes.append(wide.pop() if wide else 1)
    return tuple(sizes)
