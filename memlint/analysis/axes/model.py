"""Symbolic layouts: how the axes of an array walk through memory.

A *ranked* layout looks into a dense block of memory through ``axes``, each of which steps
along one axis of the block.  A *loose* layout belongs to an array whose rank is not known;
it keeps what can be said all the same.  An *opaque* layout says nothing.

Sizes are integers, symbols (anything hashable; only equality is asked of it) or ``None``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from memlint.late_dataclass import dataclass

Size: TypeAlias = int | Hashable | None

REVERSED = "reversed"
"""The pending permutation that reverses all axes, of an array whose rank is not known."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One axis taken out and put in again elsewhere, counted from either end."""

    source: int
    target: int


Swap: TypeAlias = tuple[int, int] | Moved | str
"""A pending permutation: two axes exchanged, one moved, or all reversed."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One logical axis.

    ``memory`` is the axis of the block that it steps along and ``step`` by how many of its
    positions (``None``: not known).  ``whole`` tells whether it visits the whole of it;
    ``None`` where that is not known.  An axis without ``memory`` is a new axis of size 1
    or a broadcast one (``step`` 0), or its stride is not known (``step`` ``None``).
    """

    size: Size
    memory: int | None = None
    step: int | None = 0
    whole: bool | None = True


@dataclass(frozen=True, slots=True)
class Loose:
    """A layout of unknown rank: a dense block seen through ``swaps`` of axes, in order.

    ``gapped`` where positions are skipped, ``broadcast`` where some are visited more than
    once, ``units`` where an axis of size 1 was put in, so that a swap may move nothing;
    ``shuffled`` where the order of the axes is not known besides.
    """

    swaps: tuple[Swap, ...] = ()
    gapped: bool = False
    broadcast: bool = False
    units: bool = False
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A ranked layout (``axes`` and ``memory``), a loose one (``loose``), or an opaque one."""

    axes: tuple[Axis, ...] | None = None
    memory: tuple[Size, ...] = ()
    loose: Loose | None = None

    @property
    def sizes(self) -> tuple[Size, ...] | None:
        """The size of each axis, or ``None`` where the rank is not known."""
        return None if self.axes is None else tuple(axis.size for axis in self.axes)

    @property
    def rank(self) -> int | None:
        """The number of axes, where known."""
        return None if self.axes is None else len(self.axes)

    @property
    def opaque(self) -> bool:
        """Whether nothing is known, not even the rank."""
        return self.axes is None and self.loose is None


OPAQUE = Layout()


def dense(sizes: Iterable[Size]) -> Layout:
    """Row-major without gaps: the last axis is the fastest."""
    kept = tuple(sizes)
    return _over_block(kept, tuple(range(len(kept))))


def fortran(sizes: Iterable[Size]) -> Layout:
    """Column-major without gaps: the first axis is the fastest."""
    kept = tuple(sizes)
    return _over_block(kept, tuple(reversed(range(len(kept)))))


def channels_last(sizes: Iterable[Size]) -> Layout:
    """``torch.channels_last`` (4 axes), ``torch.channels_last_3d`` (5), else opaque."""
    kept = tuple(sizes)
    if len(kept) not in (4, 5):
        return unknown_strides(kept)
    return in_order(kept, (0, *range(2, len(kept)), 1))


def in_order(sizes: Iterable[Size], order: Iterable[int]) -> Layout:
    """Without gaps, the axes laid out in memory as ``order`` says, outermost first."""
    kept, order = tuple(sizes), tuple(order)
    places = [0] * len(kept)
    for place, axis in enumerate(order):
        places[axis] = place
    return _over_block(kept, tuple(places))


def dense_any_rank() -> Layout:
    """Row-major without gaps, of unknown rank."""
    return Layout(loose=Loose())


def unknown_strides(sizes: Iterable[Size]) -> Layout:
    """Sizes known, strides not."""
    return Layout(tuple(Axis(size, None, None, None) for size in sizes))


def _over_block(sizes: tuple[Size, ...], places: tuple[int, ...]) -> Layout:
    memory: list[Size] = [None] * len(sizes)
    for size, place in zip(sizes, places, strict=True):
        memory[place] = size
    axes = tuple(Axis(size, place, 1) for size, place in zip(sizes, places, strict=True))
    return ranked(axes, tuple(memory))


def ranked(axes: Iterable[Axis], memory: tuple[Size, ...]) -> Layout:
    """A ranked layout in its simplest form.

    Axes of size 1 step nowhere, so they leave the block; outer parts of the block that no
    axis visits change no stride, so they are cut off.
    """
    kept = tuple(Axis(1) if axis.size == 1 and axis.memory is not None else axis for axis in axes)
    used = {axis.memory for axis in kept}
    first = min((place for place in used if place is not None), default=len(memory))
    places = [n for n, size in enumerate(memory) if n >= first and (size != 1 or n in used)]
    renumbered = {old: new for new, old in enumerate(places)}
    kept = tuple(_placed(axis, renumbered, memory) for axis in kept)
    return Layout(*_narrowed(kept, tuple(memory[place] for place in places)))


def _placed(axis: Axis, places: dict[int, int], memory: tuple[Size, ...]) -> Axis:
    """The axis with the new number of its place, and ``whole`` where the sizes tell so."""
    if axis.memory is None:
        return axis
    size = memory[axis.memory]
    covers = type(size) is int and axis.size == size and axis.step == 1
    return Axis(axis.size, places[axis.memory], axis.step, True if covers else axis.whole)


def _narrowed(
    axes: tuple[Axis, ...], memory: tuple[Size, ...]
) -> tuple[tuple[Axis, ...], tuple[Size, ...]]:
    """The outermost axis of the block, cut to the part that is visited."""
    users = [number for number, axis in enumerate(axes) if axis.memory == 0]
    if len(users) != 1:
        return axes, memory
    axis = axes[users[0]]
    if axis.step != 1 or axis.whole is True:
        return axes, memory
    whole = Axis(axis.size, 0, 1)
    return (*axes[: users[0]], whole, *axes[users[0] + 1 :]), (axis.size, *memory[1:])


def with_axes(layout: Layout, axes: Iterable[Axis]) -> Layout:
    """The same memory seen through other axes."""
    return ranked(axes, layout.memory)


def resolve(axis: int, rank: int) -> int | None:
    """An axis number counted from the front, or ``None`` where there is no such axis."""
    if not -rank <= axis < rank:
        return None
    return axis % rank
