"""What a layout says: three-valued answers and, where all sizes are known, strides.

"No" is said for generic sizes: a size that is not known counts as more than 1.
"""

from __future__ import annotations

from itertools import pairwise

from memlint.analysis.axes.model import REVERSED, Axis, Layout, Loose, Moved, Swap, resolve

_TRIED_RANKS = 4


def contiguous(layout: Layout) -> bool | None:
    """Whether the elements lie row-major without gaps; ``None`` where that is not known."""
    if layout.axes is None:
        return _loose_contiguous(layout.loose)
    if any(axis.size == 0 for axis in layout.axes):
        return True
    exact = strides(layout)
    if exact is not None:
        return _row_major(layout.axes, exact)
    return _ranked_contiguous(layout)


def _row_major(axes: tuple[Axis, ...], steps: tuple[int, ...]) -> bool:
    expected = 1
    for axis, step in zip(reversed(axes), reversed(steps), strict=True):
        if axis.size != 1:
            if step != expected:
                return False
            assert isinstance(axis.size, int)
            expected *= axis.size
    return True


def _ranked_contiguous(layout: Layout) -> bool | None:
    live = _live(layout)
    expected = [place for place, size in enumerate(layout.memory) if size != 1]
    sure: bool | None = True
    shared = _shared(live)
    if shared:
        return False if any(_windows_apart(live, place) for place in shared) else None
    for position, axis in reversed(list(enumerate(live))):
        outermost = position == 0
        if axis.memory is None:
            if axis.step == 0 or axis.whole is False:
                return False
            sure = None
            continue
        if sure is None:
            continue
        if not expected or axis.memory != expected.pop():
            return False
        if axis.step not in (1, None):
            return False
        if axis.step != 1 or (axis.whole is None and not outermost):
            sure = None
        elif axis.whole is False and not outermost:
            return False
    return sure


def _shared(axes: list[Axis]) -> set[int]:
    """The axes of the block along which several axes step, as windows do."""
    places = [axis.memory for axis in axes if axis.memory is not None]
    return {place for place in places if places.count(place) > 1}


def _windows_apart(axes: list[Axis], place: int) -> bool:
    """Whether windows surely overlap or leave gaps between them."""
    steps = [(axis.step, axis.size) for axis in axes if axis.memory == place]
    if any(type(step) is not int for step, _ in steps):
        return False
    steps.sort(key=lambda pair: pair[0] or 0)
    return any(
        isinstance(step, int) and isinstance(size, int) and step * size != following
        for (step, size), (following, _) in pairwise(steps)
    )


def _loose_contiguous(loose: Loose | None) -> bool | None:
    if loose is None:
        return None
    if loose.gapped or loose.broadcast:
        return False
    moved = {_moves(loose.swaps, rank) for rank in _ranks(loose.swaps)}
    if moved == {False}:
        return True
    return False if moved == {True} and not loose.units else None


def _ranks(swaps: tuple[Swap, ...]) -> range:
    least = 2
    for swap in swaps:
        least = max(least, 2, *(axis + 1 if axis >= 0 else -axis for axis in numbers(swap)))
        if isinstance(swap, Moved) and not _moves((swap,), least):
            # Nobody moves an axis to where it is.
            least += 1
    return range(least, least + _TRIED_RANKS)


def numbers(swap: Swap) -> tuple[int, ...]:
    """The axes that a pending permutation names."""
    if isinstance(swap, Moved):
        return (swap.source, swap.target)
    return swap if isinstance(swap, tuple) else ()


def permutation(swaps: tuple[Swap, ...], rank: int) -> tuple[int, ...]:
    """The axes of the block in the order in which ``swaps`` leave them."""
    order = list(range(rank))
    for swap in swaps:
        if swap == REVERSED:
            order.reverse()
        elif isinstance(swap, Moved):
            target = resolve(swap.target, rank)
            assert target is not None
            order.insert(target, order.pop(swap.source))
        elif isinstance(swap, tuple):
            first, second = swap
            order[first], order[second] = order[second], order[first]
    return tuple(order)


def fewest_runs(layout: Layout) -> int:
    """Into how many runs of axes that follow each other in memory an array of unknown rank
    falls at least, where none of its axes is of size 1; 0 where that is not known."""
    loose = layout.loose
    if loose is None or loose.units or loose.broadcast or loose.shuffled:
        return 0
    orders = [permutation(loose.swaps, rank) for rank in _ranks(loose.swaps)]
    return min(1 + sum(b != a + 1 for a, b in pairwise(order)) for order in orders)


def _moves(swaps: tuple[Swap, ...], rank: int) -> bool:
    return permutation(swaps, rank) != tuple(range(rank))


def _live(layout: Layout) -> list[Axis]:
    return [axis for axis in layout.axes or () if axis.size != 1]


def non_overlapping_and_dense(layout: Layout) -> bool | None:
    """Whether each position of the block is visited just once."""
    if layout.axes is None:
        loose = layout.loose
        return None if loose is None else not (loose.gapped or loose.broadcast)
    if any(axis.size == 0 for axis in layout.axes):
        return True
    order = stride_order(layout)
    if order is None:
        known = [axis for axis in _live(layout) if axis.step == 0 or axis.whole is False]
        return False if known else None
    return contiguous(permuted(layout, order))


def permuted(layout: Layout, order: tuple[int, ...]) -> Layout:
    """A ranked layout with its axes in another order."""
    assert layout.axes is not None
    return Layout(tuple(layout.axes[axis] for axis in order), layout.memory)


def channels_last(layout: Layout) -> bool | None:
    """Whether it is dense with the channels (axis 1 of 4 or 5) fastest, as torch defines it."""
    rank = layout.rank
    if rank is None:
        return None
    if rank not in (4, 5):
        return False
    if any(axis.size == 0 for axis in layout.axes or ()):
        return None
    return contiguous(permuted(layout, (0, *range(2, rank), 1)))


def stride_order(layout: Layout) -> tuple[int, ...] | None:
    """The axes from the slowest to the fastest, or ``None`` where that is not known.

    An axis of size 1 comes just before the axis that follows it.
    """
    if layout.axes is None:
        loose = layout.loose
        return None if loose is None or loose.swaps or loose.gapped or loose.broadcast else ()
    keys: list[tuple[float, int]] = []
    following = float(len(layout.memory))
    seen: set[int] = set()
    for number, axis in reversed(list(enumerate(layout.axes))):
        if axis.memory is not None and axis.step is not None and axis.memory not in seen:
            seen.add(axis.memory)
            following = float(axis.memory)
            keys.append((following, number))
        elif axis.size == 1:
            keys.append((following - 0.5, number))
        else:
            return None
    return tuple(number for _, number in sorted(keys))


def fastest_axis(layout: Layout) -> int | None:
    """The axis along which neighbours in memory lie, from 0; counted from the end (-1) where
    the rank is not known; ``None`` where it is not known."""
    if layout.axes is None:
        loose = layout.loose
        if loose is None or loose.gapped or loose.broadcast or loose.units:
            return None
        found = fastest_from_end(layout)
        return found.pop() if len(found) == 1 else None
    best: tuple[int, int] | None = None
    for number, axis in enumerate(layout.axes):
        if axis.size == 1 or (axis.memory is None and axis.step == 0):
            continue
        if axis.memory is None or axis.step is None or (best and best[0] == axis.memory):
            return None
        if best is None or axis.memory > best[0]:
            best = (axis.memory, number)
    return None if best is None else best[1]


def fastest_from_end(layout: Layout) -> set[int]:
    """Which axes, counted from the end, may be the fastest one of an array of unknown rank;
    none where nothing is known."""
    loose = layout.loose
    if loose is None or loose.gapped or loose.broadcast or loose.units or loose.shuffled:
        return set()
    return {_fastest_after(loose.swaps, rank) for rank in _ranks(loose.swaps)}


def _fastest_after(swaps: tuple[Swap, ...], rank: int) -> int:
    return permutation(swaps, rank).index(rank - 1) - rank


def strides(layout: Layout) -> tuple[int, ...] | None:
    """The strides in elements, where all sizes are known; of an axis of size 1, the stride
    that a dense array would have there."""
    if layout.axes is None or any(type(axis.size) is not int for axis in layout.axes):
        return None
    found: list[int] = []
    dense_here = 1
    for axis in reversed(layout.axes):
        step = _stride(axis, layout, dense_here)
        if step is None:
            return None
        found.append(step)
        assert isinstance(axis.size, int)
        dense_here = step * axis.size if axis.size > 1 else step
    return tuple(reversed(found))


def _stride(axis: Axis, layout: Layout, dense_here: int) -> int | None:
    if axis.size == 1:
        return dense_here
    if axis.memory is None or axis.step is None:
        return axis.step
    inner = 1
    for size in layout.memory[axis.memory + 1 :]:
        if type(size) is not int:
            return None
        inner *= size
    return axis.step * inner
