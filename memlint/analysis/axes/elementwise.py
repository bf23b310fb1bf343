"""The layout of results that are computed element by element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from memlint.analysis.axes.model import (
    OPAQUE,
    Axis,
    Layout,
    Loose,
    Size,
    dense,
    in_order,
    unknown_strides,
)
from memlint.analysis.axes.queries import non_overlapping_and_dense

_Keys = list[Axis | None]


def elementwise(operands: Sequence[Layout], c_order_wins: bool = False) -> Layout:
    """The result of an operation on ``operands``, broadcast against each other.

    Torch lets the first operand decide on which axis is the faster one, and asks the next
    only where it is broadcast; numpy (``c_order_wins``) prefers row-major where two differ.
    """
    full = [layout for layout in operands if layout.rank != 0]
    if not full:
        return dense(()) if operands else OPAQUE
    if any(layout.opaque for layout in full):
        return OPAQUE
    if any(layout.axes is None for layout in full):
        return _loose_result(full)
    sizes = broadcast_sizes([layout.sizes or () for layout in full])
    if sizes is None:
        return OPAQUE
    keys = [_keys(layout, sizes) for layout in full]
    if 1 in sizes and _undecided_pair(sizes, keys):
        return unknown_strides(sizes)
    if all(natural(layout) for layout in full):
        return dense(sizes)
    order = _sorted_axes(sizes, keys, c_order_wins)
    return unknown_strides(sizes) if order is None else in_order(sizes, order)


def preserved(layout: Layout) -> Layout:
    """``empty_like`` and ``clone`` with the default ``preserve_format``."""
    return elementwise([layout])


def converted(layout: Layout) -> Layout:
    """``to`` where it copies: strides kept where dense; of gapped and broadcast arrays the
    order of the axes was kept by some versions only."""
    if layout.axes is None:
        loose = layout.loose
        if loose is None or loose.shuffled or (loose.swaps and (loose.gapped or loose.broadcast)):
            return OPAQUE
        return Layout(loose=Loose(loose.swaps, units=loose.units))
    sizes = layout.sizes or ()
    if natural(layout):
        return dense(sizes)
    if non_overlapping_and_dense(layout):
        return layout
    return unknown_strides(sizes)


def _loose_result(operands: Sequence[Layout]) -> Layout:
    units = any(layout.loose is not None and layout.loose.units for layout in operands)
    if all(natural(layout) for layout in operands):
        return Layout(loose=Loose(units=units))
    swaps = {layout.loose.swaps if layout.loose is not None else None for layout in operands}
    only = swaps.pop()
    shuffled = any(layout.loose is not None and layout.loose.shuffled for layout in operands)
    if swaps or only is None or shuffled or (len(operands) > 1 and units):
        return OPAQUE
    return Layout(loose=Loose(only, units=units))


def natural(layout: Layout) -> bool:
    """Whether its axes surely follow each other in memory as they are numbered, broadcast
    ones and gaps left out."""
    if layout.axes is None:
        return layout.loose is not None and not layout.loose.swaps and not layout.loose.shuffled
    last: tuple[int, int] | None = None
    for axis in layout.axes:
        if axis.size == 1 or (axis.memory is None and axis.step == 0):
            continue
        if axis.memory is None or axis.step is None:
            return False
        here = (axis.memory, -abs(axis.step))
        if last is not None and here <= last:
            return False
        last = here
    return True


def broadcast_sizes(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...] | None:
    """The common shape, or ``None`` where there is none."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = []
    for place in range(-rank, 0):
        sizes = [shape[place] for shape in shapes if len(shape) >= -place]
        wide = [size for size in sizes if size != 1]
        known = [size for size in wide if type(size) is int]
        if len(set(known)) > 1:
            return None
        named = [size for size in wide if size is not None]
        result.append(1 if not wide else known[0] if known else named[0] if named else None)
    return tuple(result)


def _keys(layout: Layout, sizes: tuple[Size, ...]) -> _Keys:
    """Per axis of the result, the axis of the operand; ``None`` where it is broadcast."""
    axes = layout.axes or ()
    keys: _Keys = [None] * (len(sizes) - len(axes))
    for axis in axes:
        broadcast = axis.size == 1 or (axis.memory is None and axis.step == 0)
        keys.append(None if broadcast else axis)
    return keys


def _undecided_pair(sizes: tuple[Size, ...], keys: list[_Keys]) -> bool:
    """Whether no operand orders some two axes: the stride of an axis of size 1 then may."""
    live = [axis for axis, size in enumerate(sizes) if size != 1]
    return any(
        all(key[one] is None or key[two] is None for key in keys)
        for one, two in combinations(live, 2)
    )


def _sorted_axes(
    sizes: tuple[Size, ...], keys: list[_Keys], c_order_wins: bool
) -> tuple[int, ...] | None:
    """The axes from the slowest to the fastest: the sort that both libraries do, in which a
    pair that no operand decides stays as it is."""
    order = [axis for axis in reversed(range(len(sizes))) if sizes[axis] != 1]
    decide = _numpy_decides if c_order_wins else _torch_decides
    for start in range(1, len(order)):
        place = start
        for other in reversed(range(start)):
            verdict = decide(order[other], order[place], keys)
            if verdict is None:
                return None
            if verdict > 0 and c_order_wins:
                order.insert(other, order.pop(place))
                place = other
            elif verdict > 0:
                order[other], order[place] = order[place], order[other]
                place = other
            elif verdict < 0:
                break
    return _with_units(sizes, list(reversed(order)))


def _with_units(sizes: tuple[Size, ...], order: list[int]) -> tuple[int, ...]:
    """Axes of size 1 put back just before the axis that follows them."""
    for axis in reversed(range(len(sizes))):
        if sizes[axis] == 1:
            order.insert(order.index(axis + 1) if axis + 1 in order else len(order), axis)
    return tuple(order)


def _torch_decides(fast: int, slow: int, keys: list[_Keys]) -> int | None:
    """Positive where ``slow`` has the smaller stride, negative where ``fast`` has; 0 where
    no operand says."""
    for key in keys:
        one, two = key[fast], key[slow]
        if one is None or two is None:
            continue
        return _compare(one, two)
    return 0


def _numpy_decides(fast: int, slow: int, keys: list[_Keys]) -> int | None:
    verdicts: list[int] = []
    for key in keys:
        one, two = key[fast], key[slow]
        if one is None or two is None:
            continue
        verdict = _compare(one, two)
        if verdict is None:
            return None
        verdicts.append(verdict)
    return 0 if not verdicts else min(verdicts)


def _compare(one: Axis, two: Axis) -> int | None:
    if None in (one.memory, two.memory, one.step, two.step):
        return None
    assert one.memory is not None
    assert two.memory is not None
    assert one.step is not None
    assert two.step is not None
    if one.memory != two.memory:
        return -1 if one.memory > two.memory else 1
    if abs(one.step) == abs(two.step):
        return None
    return -1 if abs(one.step) < abs(two.step) else 1
