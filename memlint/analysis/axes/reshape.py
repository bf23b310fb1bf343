"""Reshaping: which axes can be merged or split in place, and when a copy is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from memlint.analysis.axes.model import (
    OPAQUE,
    Axis,
    Layout,
    Size,
    dense,
    ranked,
    resolve,
    unknown_strides,
)
from memlint.analysis.axes.queries import contiguous, fewest_runs
from memlint.late_dataclass import dataclass

# No library takes more.
MOST_AXES = 64


@dataclass(frozen=True, slots=True)
class Group:
    """Adjacent axes (by number) that become axes of the given sizes.

    ``sure`` where just these become those; else the group may fall into smaller ones.
    """

    old: tuple[int, ...]
    new: tuple[Size, ...]
    sure: bool = True


def reshape(layout: Layout, sizes: Sequence[Size]) -> tuple[Layout, bool | None]:
    """``reshape(*sizes)``, one of which may be -1: the result, and whether it is a copy."""
    target = resolve_sizes(layout.sizes, tuple(sizes))
    is_dense = contiguous(layout)
    if is_dense is True:
        return dense(target), False
    if layout.axes is None:
        runs = 0 if is_dense is None else fewest_runs(layout)
        # Each run of axes that follow each other in memory takes an axis of its own.
        copies = True if sum(size != 1 for size in target) < runs else None
        return (dense(target) if copies else unknown_strides(target)), copies
    return regroup(layout, _groups(layout.axes, target), target)


def resolve_sizes(old: tuple[Size, ...] | None, new: tuple[Size, ...]) -> tuple[Size, ...]:
    """The sizes with -1 replaced by what it stands for, where that is known."""
    if new.count(-1) != 1:
        return tuple(None if size == -1 else size for size in new)
    rest: list[Size] = list(old) if old is not None else [None]
    for size in new:
        if size != -1 and size is not None and size in rest:
            rest.remove(size)
    used = [s for s in new if s != -1]
    for size in old or ():
        if size is not None and size in used:
            used.remove(size)
    inferred: Size = None
    whole = [size for size in rest if type(size) is int]
    taken = [size for size in used if type(size) is int]
    if len(whole) == len(rest) and len(taken) == len(used):
        total, part = prod(whole), prod(taken)
        inferred = total // part if part else None
    elif not used and len(rest) == 1:
        inferred = rest[0]
    return tuple(inferred if size == -1 else size for size in new)


def flatten(layout: Layout, start: int = 0, end: int = -1) -> tuple[Layout, bool | None]:
    """Axes ``start`` to ``end`` merged into one."""
    if layout.axes is None:
        if (start, end) == (0, -1):
            return reshape(layout, (-1,))
        if contiguous(layout) is not True:
            return OPAQUE, None
        if end == -1 and 0 <= start < MOST_AXES:
            return dense((None,) * (start + 1)), False
        return layout, False
    rank = len(layout.axes)
    if rank == 0:
        return dense((1,)), False
    first, last = resolve(start, rank), resolve(end, rank)
    if first is None or last is None or first > last:
        return OPAQUE, None
    sizes = tuple(axis.size for axis in layout.axes)
    inside = sizes[first : last + 1]
    merged: Size = inside[0] if len(inside) == 1 else None
    whole = [size for size in inside if type(size) is int]
    if len(whole) == len(inside):
        merged = prod(whole)
    target = (*sizes[:first], merged, *sizes[last + 1 :])
    groups = [Group((n,), (sizes[n],)) for n in range(first)]
    groups.append(Group(tuple(range(first, last + 1)), (merged,)))
    groups += [Group((n,), (sizes[n],)) for n in range(last + 1, rank)]
    return regroup(layout, groups, target)


def unflatten(layout: Layout, axis: int, sizes: Sequence[Size]) -> tuple[Layout, bool | None]:
    """One axis split into several: always a view."""
    if layout.axes is None:
        return (layout, False) if contiguous(layout) is True else (OPAQUE, None)
    rank = len(layout.axes)
    place = resolve(axis, rank)
    if place is None:
        return OPAQUE, None
    old = tuple(one.size for one in layout.axes)
    parts = resolve_sizes((old[place],), tuple(sizes))
    groups = [Group((n,), parts if n == place else (old[n],)) for n in range(rank)]
    return regroup(layout, groups, (*old[:place], *parts, *old[place + 1 :]))


def _groups(axes: tuple[Axis, ...], target: tuple[Size, ...]) -> list[Group]:
    """The smallest matching groups of axes, those of size 1 left out."""
    old = [number for number, axis in enumerate(axes) if axis.size != 1]
    new = [size for size in target if size != 1]
    front: list[Group] = []
    back: list[Group] = []
    while old and new and _same(axes[old[0]].size, new[0]):
        front.append(Group((old.pop(0),), (new.pop(0),)))
    while old and new and _same(axes[old[-1]].size, new[-1]):
        back.append(Group((old.pop(),), (new.pop(),)))
    middle = _integer_groups(axes, old, new)
    if middle is None:
        sure = len(new) == 1 or len(old) == 1
        middle = [Group(tuple(old), tuple(new), sure)] if old or new else []
    return [*front, *middle, *reversed(back)]


def _same(left: Size, right: Size) -> bool:
    return left is not None and left == right


def _integer_groups(axes: tuple[Axis, ...], old: list[int], new: list[Size]) -> list[Group] | None:
    """Groups by equal products, where all sizes are known."""
    sizes = [axes[number].size for number in old]
    if not all(type(size) is int and size > 1 for size in (*sizes, *new)):
        return None
    groups: list[Group] = []
    taken, made = 0, 0
    while taken < len(old) and made < len(new):
        first, start = taken, made
        left, right = sizes[taken], new[made]
        taken, made = taken + 1, made + 1
        while left != right:
            assert isinstance(left, int)
            assert isinstance(right, int)
            if left < right and taken < len(old):
                left *= _integer(sizes[taken])
                taken += 1
            elif right < left and made < len(new):
                right *= _integer(new[made])
                made += 1
            else:
                return None
        groups.append(Group(tuple(old[first:taken]), tuple(new[start:made])))
    return groups if taken == len(old) and made == len(new) else None


def _integer(size: Size) -> int:
    assert isinstance(size, int)
    return size


def regroup(
    layout: Layout, groups: Sequence[Group], target: tuple[Size, ...]
) -> tuple[Layout, bool | None]:
    """Each group merged and split; a copy where one of them cannot be in place."""
    assert layout.axes is not None
    if any(axis.size == 0 for axis in layout.axes):
        return dense(target), False
    groups = [_without_units(layout, group) for group in groups]
    groups = [group for group in groups if group.old or group.new]
    verdicts = [_in_place([layout.axes[n] for n in group.old], group) for group in groups]
    if False in verdicts:
        return dense(target), True
    if None in verdicts:
        return unknown_strides(target), None
    return _rebuilt(layout, groups, target), False


def _without_units(layout: Layout, group: Group) -> Group:
    """The group without the axes of size 1, which move freely."""
    assert layout.axes is not None
    old = tuple(number for number in group.old if layout.axes[number].size != 1)
    return Group(old, tuple(size for size in group.new if size != 1), group.sure)


def _in_place(axes: list[Axis], group: Group) -> bool | None:
    if not axes or not group.new:
        return None
    if len(axes) == 1:
        return True
    pairs = [mergeable(outer, inner) for outer, inner in pairwise(axes)]
    if not group.sure and not all(pairs):
        runs = 1 + pairs.count(False)
        return False if len(group.new) < runs else None
    if False in pairs:
        return False
    return None if None in pairs else True


def mergeable(outer: Axis, inner: Axis) -> bool | None:
    """Whether two neighbouring axes can be walked as one."""
    if outer.memory is None or inner.memory is None:
        if outer.step is None or inner.step is None:
            return None
        return outer.memory is None and inner.memory is None
    if outer.step is None or inner.step is None:
        return None
    if outer.memory == inner.memory:
        if type(inner.size) is int:
            return outer.step == inner.step * inner.size
        return None
    if outer.memory != inner.memory - 1:
        return False
    if inner.step != 1:
        return None
    return inner.whole if outer.step == 1 else (False if inner.whole else None)


def _rebuilt(layout: Layout, groups: Sequence[Group], target: tuple[Size, ...]) -> Layout:
    assert layout.axes is not None
    blocks: dict[int, tuple[Size, ...]] = {}
    gone: set[int] = set()
    made: list[tuple[Axis, int | None]] = []
    for group in groups:
        axes = [layout.axes[number] for number in group.old]
        if len(axes) == len(group.new) == 1:
            made.append((axes[0], None))
            continue
        places = [axis.memory for axis in axes if axis.memory is not None]
        if len(places) != len(set(places)) or not _plain(axes, layout):
            made += [(axis, None) for axis in _split_in_place(axes, group.new)]
            continue
        blocks[places[0]] = group.new
        gone.update(places[1:])
        for position, size in enumerate(group.new):
            whole = axes[0].whole if position == 0 else True
            made.append((Axis(size, places[0], 1, whole), position))
    return _renumbered(layout, blocks, gone, made, target)


def _plain(axes: list[Axis], layout: Layout) -> bool:
    """Whether the axes are the only ones on their part of the block, and step by ones."""
    places = {axis.memory for axis in axes}
    others = [axis for axis in layout.axes or () if axis.memory in places]
    if None in places or len(others) != len(axes) or any(axis.step != 1 for axis in axes):
        return False
    return axes[0].whole is True or axes[0].memory == 0


def _split_in_place(axes: list[Axis], sizes: tuple[Size, ...]) -> list[Axis]:
    """New axes over part of a memory axis: each steps over those inside it."""
    last = axes[-1]
    if last.memory is None:
        return [replace(last, size=size) for size in sizes]
    step = last.step if len(axes) == 1 else None
    made: list[Axis] = []
    for size in reversed(sizes):
        if step is None:
            made.append(Axis(size, None, None, None))
            continue
        made.append(Axis(size, last.memory, step, False))
        step = step * size if type(size) is int else None
    return list(reversed(made))


def _renumbered(
    layout: Layout,
    blocks: dict[int, tuple[Size, ...]],
    gone: set[int],
    made: list[tuple[Axis, int | None]],
    target: tuple[Size, ...],
) -> Layout:
    memory: list[Size] = []
    places: dict[int, int] = {}
    for place, size in enumerate(layout.memory):
        if place in gone:
            continue
        places[place] = len(memory)
        memory.extend(blocks.get(place, (size,)))
    axes: list[Axis] = []
    for axis, position in made:
        if axis.memory is None:
            axes.append(axis)
        else:
            axes.append(replace(axis, memory=places[axis.memory] + (position or 0)))
    return ranked(_with_units(axes, target), tuple(memory))


def _with_units(axes: list[Axis], target: tuple[Size, ...]) -> list[Axis]:
    """The new axes of size 1 put in where the target has them."""
    rest = [axis for axis in axes if axis.size != 1]
    if len(rest) != sum(size != 1 for size in target):
        return [Axis(size, None, None, None) for size in target]
    following = iter(rest)
    return [Axis(1) if size == 1 else next(following) for size in target]
