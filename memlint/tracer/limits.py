"""Limits for what a traced block does to memory: what tests assert of it.

They count what ran, on whatever device and at whatever size, and measure nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from memlint.layout import Strided, stride_order
from memlint.tracer.records import Operation

_COPIES = frozenset({"clone", "copy", "copy_", "_to_copy", "contiguous", "_pin_memory"})
_SYNCHRONISING = frozenset(
    {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2"}
)
_BY_MASK = frozenset({"index", "index_put", "index_put_"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What a block may not do.

    ``no_layout_copies`` forbids copies that change nothing but the order in which numbers are
    stored, ``no_sync`` operations that make the host wait for a GPU (on a CPU as well, where they
    wait for nothing); ``max_copy_bytes`` is how many bytes may be copied in all.
    """

    no_layout_copies: bool = False
    max_copy_bytes: int | None = None
    no_sync: bool = False

    def broken(self, operations: Sequence[Operation], spelled: Callable[[str], str]) -> list[str]:
        """What has been done all the same, a line for each place; ``spelled`` tells how paths
        are shown."""
        found: list[str] = []
        if self.no_layout_copies:
            found += _told("layout copy", operations, _layout_copies, spelled)
        if self.no_sync:
            found += _told("synchronisation", operations, _synchronisations, spelled)
        if self.max_copy_bytes is not None:
            nbytes = sum(_copied(one) for one in operations)
            if nbytes > self.max_copy_bytes:
                found.append(f"{nbytes:,} bytes copied, of {self.max_copy_bytes:,} that may be")
                found += _told("copy", operations, _copies, spelled)
        return found


def _told(
    what: str,
    operations: Sequence[Operation],
    counted: Callable[[Operation], int],
    spelled: Callable[[str], str],
) -> Iterator[str]:
    for one in operations:
        if count := counted(one):
            place = f"{spelled(one.site.path)}:{one.site.line}"
            nbytes = f", {_copied(one):,} bytes" if _copied(one) else ""
            yield f"{place}: {what}: {one.short.strip('_')}, {_often(count)}{nbytes}"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _copies(operation: Operation) -> int:
    return operation.count if operation.short in _COPIES else 0


def _copied(operation: Operation) -> int:
    """Bytes that were written by copies; those of views of one element over and over are not
    counted more than once each time."""
    if not _copies(operation) or not operation.results:
        return 0
    array = operation.results[0].array
    return prod(array.shape) * array.itemsize * operation.count


def _layout_copies(operation: Operation) -> int:
    if operation.hidden:
        return operation.hidden
    if not _copies(operation) or not operation.results or not operation.operands:
        return 0
    # Of ``copy_`` the second operand is read, of all others the first one.
    read = operation.operands[-1] if operation.short == "copy_" else operation.operands[0]
    made = operation.results[0]
    same = (read.dtype, read.device, read.array.shape) == (
        made.dtype,
        made.device,
        made.array.shape,
    )
    return operation.count if same and _are_reordered(read.array, made.array) else 0


def _are_reordered(read: Strided, made: Strided) -> bool:
    """Whether two arrays of a shape differ in the order of their axes; those that are one number
    long, or one number over and over, have no place in it."""
    if not len(read.shape) == len(read.strides) == len(made.strides):
        return False  # no strided arrays
    placed = {
        axis
        for axis, size in enumerate(read.shape)
        if size > 1 and read.strides[axis] and made.strides[axis]
    }
    orders = [[axis for axis in stride_order(one) if axis in placed] for one in (read, made)]
    return orders[0] != orders[1]


def _synchronisations(operation: Operation) -> int:
    if operation.short in _SYNCHRONISING:
        return operation.count
    if operation.short in _BY_MASK and any(one.dtype == "bool" for one in operation.operands[1:]):
        return operation.count
    to_host = bool(operation.results) and operation.results[0].kind == "cpu"
    from_device = any(one.kind != "cpu" for one in operation.operands)
    blocking = not dict(operation.keywords).get("non_blocking", False)
    return operation.count if _copies(operation) and to_host and from_device and blocking else 0
