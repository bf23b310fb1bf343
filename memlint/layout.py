"""Stride arithmetic: what the shape and strides of an array mean for memory traffic.

Pure Python on plain numbers, shared by what is read of a program and what is recorded of a
run.  Strides are in elements, as torch gives them; ``from_bytes`` turns numpy's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

CACHE_LINE = 64
"""Bytes that one access brings in."""

_LEAST_CONFLICT = 4096


class Form(Enum):
    """How the elements of an array lie in memory."""

    CONTIGUOUS = "contiguous"
    CHANNELS_LAST = "channels last"
    PERMUTED = "permuted"
    GAPPED = "gapped"
    BROADCAST = "broadcast"
    OVERLAPPING = "overlapping"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Strided:
    """Shape, strides (in elements) and bytes per element of an array.

    Where the strides are not known, or there are none, as of a sparse array, they are empty."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def has_strides(self) -> bool:
        """Whether the strides of all axes are known."""
        return len(self.strides) == len(self.shape)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of a dense copy."""
        return self.elements * self.itemsize


def from_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Strided:
    """An array whose strides are counted in bytes, as numpy does."""
    return Strided(tuple(shape), tuple(step // itemsize for step in strides), itemsize)


def is_contiguous(array: Strided) -> bool:
    """Whether the elements lie row-major without gaps, axes of size 1 aside.

    >>> is_contiguous(Strided((1, 4), (1, 1), 4))
    True
    """
    return 0 in array.shape or _dense_in(array, range(len(array.shape)))


def is_fortran(array: Strided) -> bool:
    """Whether the elements lie column-major without gaps, axes of size 1 aside."""
    return 0 in array.shape or _dense_in(array, reversed(range(len(array.shape))))


def is_channels_last(array: Strided) -> bool:
    """Whether axis 1 of 4 is the fastest, as ``torch.channels_last``.

    An empty array is so by its strides only, as torch has it.
    """
    return len(array.shape) == 4 and _dense_in(array, (0, 2, 3, 1))


def is_channels_last_3d(array: Strided) -> bool:
    """Whether axis 1 of 5 is the fastest, as ``torch.channels_last_3d``."""
    return len(array.shape) == 5 and _dense_in(array, (0, 2, 3, 4, 1))


def is_non_overlapping_and_dense(array: Strided) -> bool:
    """Whether each place of the memory it spans is visited just once."""
    return 0 in array.shape or _dense_in(array, stride_order(array))


def _dense_in(array: Strided, order: Iterable[int]) -> bool:
    if not array.has_strides:
        return False
    expected = 1
    for axis in reversed(tuple(order)):
        if array.shape[axis] == 1:
            continue
        if array.strides[axis] != expected:
            return False
        expected *= array.shape[axis]
    return True


def stride_order(array: Strided) -> tuple[int, ...]:
    """The axes from the slowest to the fastest; equal ones keep their order, as all do where
    the strides are not known."""
    if not array.has_strides:
        return tuple(range(len(array.shape)))
    return tuple(sorted(range(len(array.shape)), key=lambda axis: -abs(array.strides[axis])))


def fastest_axis(array: Strided) -> int | None:
    """The axis along which neighbours in memory lie; ``None`` where no axis moves."""
    if not array.has_strides:
        return None
    moving = [n for n, size in enumerate(array.shape) if size > 1 and array.strides[n]]
    return min(moving, key=lambda axis: abs(array.strides[axis]), default=None)


def classify(array: Strided) -> Form:
    """How the elements lie in memory."""
    if is_contiguous(array):
        return Form.CONTIGUOUS
    if is_channels_last(array) or is_channels_last_3d(array):
        return Form.CHANNELS_LAST
    if is_non_overlapping_and_dense(array):
        return Form.PERMUTED
    if not array.has_strides:
        return Form.UNKNOWN
    live = [n for n, size in enumerate(array.shape) if size > 1]
    if any(array.strides[axis] == 0 for axis in live):
        return Form.BROADCAST
    return Form.OVERLAPPING if _overlaps(array, live) else Form.GAPPED


def _overlaps(array: Strided, live: list[int]) -> bool:
    """Whether an axis steps back into what the faster ones reach over."""
    reach = 0
    for axis in sorted(live, key=lambda n: abs(array.strides[n])):
        step = abs(array.strides[axis])
        if step <= reach:
            return True
        reach += step * (array.shape[axis] - 1)
    return False


def broadcast(array: Strided, shape: tuple[int, ...]) -> Strided:
    """A view of a larger shape, as ``expand`` makes it of axes of size 1 and new ones in front.

    >>> broadcast(Strided((1, 4), (4, 1), 4), (2, 3, 4)).strides
    (0, 0, 1)
    """
    added = len(shape) - len(array.shape)
    sizes, steps = (1,) * added + array.shape, (0,) * added + array.strides
    moved = zip(sizes, steps, shape, strict=True)
    return Strided(shape, tuple(0 if a == 1 != b else step for a, step, b in moved), array.itemsize)


def can_be_viewed(array: Strided, shape: tuple[int, ...]) -> bool:
    """Whether an array of another shape, and as many elements, can lie in the same memory.

    >>> can_be_viewed(Strided((4, 3), (0, 1), 4), (12,))
    False
    """
    if 0 in array.shape:
        return True
    left = [size for size in shape if size > 1]
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    while axes:
        # The axes up to one whose neighbours do not go on where it ends can be cut at will.
        run = array.shape[last := axes.pop()]
        while axes and array.strides[axes[-1]] == array.strides[last] * array.shape[last]:
            run *= array.shape[last := axes.pop()]
        while run > 1:
            if not left or run % left[-1]:
                return False
            run //= left.pop()
    return True


def span(array: Strided) -> int:
    """The elements between the first and the last one of an array, both included."""
    if 0 in array.shape:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return 1 + sum((size - 1) * abs(step) for size, step in steps)


def line_bytes_used(array: Strided, inner_axis: int, line: int = CACHE_LINE) -> int:
    """Bytes of each cache line that a walk along ``inner_axis`` uses.

    >>> line_bytes_used(Strided((1024, 1024), (1024, 1), 8), inner_axis=0)
    8
    """
    step = abs(array.strides[inner_axis]) * array.itemsize
    if array.shape[inner_axis] <= 1 or step >= line:
        return min(array.itemsize, line)
    if step == 0:
        return min(array.itemsize, line)
    return min(line, line // step * array.itemsize)


def conflicts(array: Strided, inner_axis: int) -> bool:
    """Whether a walk along ``inner_axis`` steps by a power of two of at least a page, so that
    its lines fall into few sets of the cache."""
    step = abs(array.strides[inner_axis]) * array.itemsize
    return array.shape[inner_axis] > 1 and step >= _LEAST_CONFLICT and step & (step - 1) == 0


def copy_bytes(array: Strided, line: int = CACHE_LINE) -> int:
    """Bytes that a dense copy moves: whole lines read, the copy written."""
    fastest = fastest_axis(array)
    if fastest is None:
        return array.itemsize + array.nbytes
    used = line_bytes_used(array, fastest, line)
    distinct = prod(
        size for size, step in zip(array.shape, array.strides, strict=True) if step != 0
    )
    return -(-distinct * array.itemsize * line // used) + array.nbytes


def length_of(numbers: range) -> int:
    """The length of a range, also where it is more than ``len`` can say."""
    step = numbers.step
    return max(0, (numbers.stop - numbers.start + step - (1 if step > 0 else -1)) // step)
