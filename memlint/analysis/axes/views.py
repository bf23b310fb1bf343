"""Views: operations that look at the same memory through other axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memlint.analysis.axes.model import (
    OPAQUE,
    REVERSED,
    Axis,
    Layout,
    Loose,
    Moved,
    Size,
    Swap,
    dense,
    ranked,
    resolve,
    unknown_strides,
    with_axes,
)
from memlint.analysis.axes.queries import numbers, permutation, permuted
from memlint.layout import length_of


class NotKnown:
    """A bound or a count that is given but not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NOT_KNOWN"


NOT_KNOWN: Final = NotKnown()
# No library takes more; a permutation of a million axes would take as many steps.
_MOST_AXES = 64


def give_rank(layout: Layout, rank: int) -> Layout:
    """The same layout, once it is known how many axes it has."""
    loose = layout.loose
    if loose is None or loose.gapped or loose.broadcast or loose.units:
        return layout if layout.axes is not None else unknown_strides((None,) * rank)
    if any(not _fits(swap, rank) for swap in loose.swaps):
        return unknown_strides((None,) * rank)
    return permuted(dense((None,) * rank), permutation(loose.swaps, rank))


def with_sizes(layout: Layout, sizes: Sequence[Size]) -> Layout:
    """The same layout, once it is known how long each of its axes is."""
    if layout.axes is None or len(layout.axes) != len(sizes):
        return layout
    memory = list(layout.memory)
    known: list[Axis] = []
    for axis, size in zip(layout.axes, sizes, strict=True):
        if axis.memory is not None and axis.step == 1 and axis.whole:
            memory[axis.memory] = size
        known.append(replace(axis, size=size))
    return ranked(known, tuple(memory))


def _fits(swap: Swap, rank: int) -> bool:
    return all(resolve(axis, rank) is not None for axis in numbers(swap))


def permute(layout: Layout, order: Sequence[int | None]) -> Layout:
    """The axes in a given order."""
    layout = give_rank(layout, len(order))
    if layout.axes is None or layout.rank != len(order):
        return OPAQUE
    rank = len(order)
    places = [None if axis is None else resolve(axis, rank) for axis in order]
    known = [place for place in places if place is not None]
    if len(known) != rank or len(set(known)) != rank:
        return unknown_strides((None,) * rank)
    return permuted(layout, tuple(known))


def transpose(layout: Layout, first: int | None, second: int | None) -> Layout:
    """Two axes exchanged."""
    if first is None or second is None:
        return OPAQUE if layout.rank is None else unknown_strides((None,) * layout.rank)
    if layout.axes is None:
        swap = (min(first, second), max(first, second))
        return layout if first == second else _swapped(layout, swap)
    if not layout.axes:
        return layout
    one, two = resolve(first, len(layout.axes)), resolve(second, len(layout.axes))
    if one is None or two is None:
        return OPAQUE
    order = list(range(len(layout.axes)))
    order[one], order[two] = two, one
    return permuted(layout, tuple(order))


def _swapped(layout: Layout, swap: Swap) -> Layout:
    loose = layout.loose
    if loose is None or any(not -_MOST_AXES <= axis < _MOST_AXES for axis in numbers(swap)):
        return OPAQUE
    swaps = loose.swaps
    undone = Moved(swap.target, swap.source) if isinstance(swap, Moved) else swap
    swaps = swaps[:-1] if swaps and swaps[-1] == undone else (*swaps, swap)
    return Layout(loose=replace(loose, swaps=swaps))


def reverse(layout: Layout) -> Layout:
    """All axes in reverse order, as ``.T``."""
    if layout.axes is None:
        return _swapped(layout, REVERSED)
    return permuted(layout, tuple(reversed(range(len(layout.axes)))))


def t(layout: Layout) -> Layout:
    """``Tensor.t()``: at most two axes, exchanged."""
    return reverse(give_rank(layout, 2) if layout.loose is not None else layout)


def movedim(layout: Layout, source: Sequence[int], destination: Sequence[int]) -> Layout:
    """Axes moved to other places, the rest keeping their order."""
    rank = layout.rank
    if len(source) != len(destination):
        return OPAQUE
    if rank is None:
        return _moved(layout, source[0], destination[0]) if len(source) == 1 else OPAQUE
    sources = [resolve(axis, rank) for axis in source]
    targets = [resolve(axis, rank) for axis in destination]
    if None in sources or None in targets or len(set(sources)) != len(set(targets)):
        return OPAQUE
    placed = dict(zip(targets, sources, strict=True))
    rest = iter(axis for axis in range(rank) if axis not in sources)
    return permute(layout, [placed[n] if n in placed else next(rest) for n in range(rank)])


def _moved(layout: Layout, source: int, target: int) -> Layout:
    if source == target:
        return layout
    adjacent = abs(source - target) == 1 and (source < 0) == (target < 0)
    return _swapped(
        layout, (min(source, target), max(source, target)) if adjacent else Moved(source, target)
    )


def select(layout: Layout, axis: int | None) -> Layout:
    """One position of an axis, which goes away."""
    if layout.axes is None:
        return _cut_loose(layout, axis)
    place = None if axis is None else resolve(axis, len(layout.axes))
    if place is None:
        return unknown_strides((None,) * (len(layout.axes) - 1)) if layout.axes else OPAQUE
    return with_axes(layout, layout.axes[:place] + layout.axes[place + 1 :])


def _cut_loose(layout: Layout, axis: int | None) -> Layout:
    """Part of an axis of an array whose rank is not known."""
    loose = layout.loose
    if loose is None or axis is None or loose.swaps or loose.units or loose.shuffled:
        return OPAQUE
    if axis == 0:
        return OPAQUE if loose.broadcast or loose.gapped else layout
    if axis < -1 or (axis == -1 and loose.gapped):
        return OPAQUE
    return Layout(loose=replace(loose, gapped=True))


def slice_axis(
    layout: Layout,
    axis: int | None,
    start: Size | NotKnown = None,
    stop: Size | NotKnown = None,
    step: Size | NotKnown = None,
    length: Size = None,
) -> Layout:
    """``start:stop:step`` of one axis; ``None`` is an absent bound, ``length`` how many
    positions lie between them, where known otherwise."""
    stride = 1 if step is None else step if type(step) is int else None
    if layout.axes is None:
        if stride == 1 and _all_of(None, start, stop):
            return layout
        if stride is not None and stride < 0 and layout.loose and layout.loose.gapped:
            return OPAQUE  # it may walk back along what was walked backwards
        if axis == 0 and stride != 1:
            return _cut_loose(layout, 1) if stride is not None else OPAQUE
        return _cut_loose(layout, axis)
    place = None if axis is None else resolve(axis, len(layout.axes))
    if place is None or stride == 0:
        return OPAQUE
    old = layout.axes[place]
    size = length if length is not None else _slice_size(old.size, start, stop, step)
    new = _stepped(old, size, stride, stride == 1 and _all_of(old.size, start, stop))
    return with_axes(layout, (*layout.axes[:place], new, *layout.axes[place + 1 :]))


def _stepped(old: Axis, size: Size, stride: int | None, everything: bool) -> Axis:
    if everything:
        return old
    if old.memory is None:
        return Axis(size, None, old.step, old.whole)
    step = None if old.step is None or stride is None else old.step * stride
    whole = False if stride == 1 or old.whole is False else None
    return Axis(size, old.memory, step, old.whole and whole)


def _all_of(size: Size, start: Size | NotKnown, stop: Size | NotKnown) -> bool:
    if not (start is None or (type(start) is int and start == 0)):
        return False
    if stop is None or (size is not None and stop == size):
        return True
    return type(size) is int and type(stop) is int and stop >= size


def _slice_size(
    size: Size, start: Size | NotKnown, stop: Size | NotKnown, step: Size | NotKnown
) -> Size:
    plain = all(bound is None or type(bound) is int for bound in (start, stop, step))
    if type(size) is int and size >= 0 and plain:
        return length_of(range(*slice(start, stop, step).indices(size)))
    if step not in (None, 1):
        return None
    if stop is None and type(start) is int and start == -1:
        return 1
    first_only = type(stop) is int and stop == 1 and (start is None or start == 0)
    return 1 if first_only else None


def narrow(layout: Layout, axis: int | None, length: Size) -> Layout:
    """``length`` positions of one axis."""
    if layout.axes is None:
        return _cut_loose(layout, axis)
    place = None if axis is None else resolve(axis, len(layout.axes))
    if place is None:
        return OPAQUE
    old = layout.axes[place]
    same = old.size is not None and old.size == length
    new = old if same else _stepped(old, length, 1, False)
    return with_axes(layout, (*layout.axes[:place], new, *layout.axes[place + 1 :]))


def split(layout: Layout, lengths: Sequence[Size], axis: int | None) -> tuple[Layout, ...]:
    """Pieces of the given lengths along one axis."""
    return tuple(narrow(layout, axis, length) for length in lengths)


def unsqueeze(layout: Layout, axis: int | None) -> Layout:
    """A new axis of size 1."""
    if layout.axes is None:
        loose = layout.loose
        if loose is None or loose.swaps:
            return OPAQUE
        return Layout(loose=replace(loose, units=True))
    rank = len(layout.axes) + 1
    place = None if axis is None else resolve(axis, rank)
    if place is None:
        return unknown_strides((None,) * rank)
    return with_axes(layout, (*layout.axes[:place], Axis(1), *layout.axes[place:]))


def squeeze(layout: Layout, axes: Sequence[int | None] | None = None) -> Layout:
    """Axes of size 1 taken out: those named, or all."""
    if layout.axes is None:
        return layout if layout.loose is not None and not layout.loose.swaps else OPAQUE
    rank = len(layout.axes)
    if axes is None:
        numbers: list[int | None] = list(range(rank))
    else:
        numbers = [None if axis is None else resolve(axis, rank) for axis in axes]
    if None in numbers:
        return OPAQUE
    if any(type(layout.axes[n].size) is not int for n in numbers if n is not None):
        return _squeezed_unknown(layout)
    return with_axes(
        layout, (a for n, a in enumerate(layout.axes) if n not in numbers or a.size != 1)
    )


def _squeezed_unknown(layout: Layout) -> Layout:
    """An axis that may have gone: a dense array stays dense, of a rank not known."""
    order = [axis.memory for axis in layout.axes or () if axis.memory is not None]
    plain = all(a.step == 1 and a.whole for a in layout.axes or () if a.memory is not None)
    dense_block = order == list(range(len(layout.memory))) and plain
    if not dense_block or any(a.memory is None and a.size != 1 for a in layout.axes or ()):
        return OPAQUE
    return Layout(loose=Loose())


def expand(layout: Layout, sizes: Sequence[Size | NotKnown]) -> Layout:
    """``expand(*sizes)``: -1 keeps an axis, NOT_KNOWN may do either."""
    if layout.axes is None:
        return OPAQUE if layout.loose is None else Layout(loose=Loose(broadcast=True))
    extra = len(sizes) - len(layout.axes)
    if extra < 0:
        return OPAQUE
    new = [Axis(None if isinstance(size, NotKnown) else size) for size in sizes[:extra]]
    pairs = zip(layout.axes, sizes[extra:], strict=True)
    new += [_expanded(axis, size) for axis, size in pairs]
    return with_axes(layout, new)


def _expanded(axis: Axis, size: Size | NotKnown) -> Axis:
    if isinstance(size, NotKnown):
        return Axis(None) if axis.size == 1 else Axis(None, None, None, None)
    if size == -1 or (size is not None and axis.size == size):
        return axis
    if axis.size == 1:
        return Axis(size)
    if type(axis.size) is int and axis.size != 1:
        return axis
    return Axis(size, None, None, None)


def diagonal(
    layout: Layout, first: int | None = 0, second: int | None = 1, offset: int | None = 0
) -> Layout:
    """The diagonal of two axes, as a last axis."""
    rank = layout.rank
    if rank is None or layout.axes is None:
        gapped = Loose((), True, shuffled=True)
        return Layout(loose=gapped) if layout.loose is not None else OPAQUE
    one = None if first is None else resolve(first, rank)
    two = None if second is None else resolve(second, rank)
    if one is None or two is None or one == two:
        return OPAQUE
    rest = [axis for number, axis in enumerate(layout.axes) if number not in (one, two)]
    size = _diagonal_size(layout.axes[one].size, layout.axes[two].size, offset)
    both_move = None not in (layout.axes[one].memory, layout.axes[two].memory)
    return with_axes(layout, (*rest, Axis(size, None, None, False if both_move else None)))


def _diagonal_size(rows: Size, columns: Size, offset: int | None) -> Size:
    if type(rows) is int and type(columns) is int and offset is not None:
        return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return 1 if 1 in (rows, columns) and offset == 0 else None


def unfold(layout: Layout, axis: int | None, size: Size, step: Size) -> Layout:
    """Windows of ``size`` positions, ``step`` apart; the window is a new last axis."""
    rank = layout.rank
    if rank is None or layout.axes is None:
        return OPAQUE if layout.loose is None else _loose_windows(size, step)
    place = None if axis is None else resolve(axis, rank)
    if place is None:
        return OPAQUE
    old = layout.axes[place]
    count: Size = None
    if type(old.size) is int and type(size) is int and type(step) is int and step > 0:
        count = (old.size - size) // step + 1
    stepped = None if old.step is None or type(step) is not int else old.step * step
    tiled: bool | None = (
        None if old.memory is None or (size is not None and size == step) else False
    )
    outer = Axis(count, old.memory, stepped, tiled)
    window = Axis(size, old.memory, old.step, tiled)
    return with_axes(layout, (*layout.axes[:place], outer, *layout.axes[place + 1 :], window))


def _loose_windows(size: Size, step: Size) -> Layout:
    if type(size) is not int or type(step) is not int or size < 2 or size == step:
        return OPAQUE
    return Layout(loose=Loose((), step > size, step < size, shuffled=True))


def every_other(layout: Layout) -> Layout:
    """Every other element of memory, as of the real parts of complex numbers."""
    if layout.axes is not None:
        return Layout(layout.axes, (*layout.memory, 2))
    loose = layout.loose
    return OPAQUE if loose is None else Layout(loose=replace(loose, gapped=True))
