"""Symbolic layouts of arrays and the operations on them.

Every operation is pure and total: on input that the program could not have meant it falls
back to a layout about which less is known, and never raises.
"""

from memlint.analysis.axes.elementwise import (
    broadcast_sizes,
    converted,
    elementwise,
    natural,
    preserved,
)
from memlint.analysis.axes.indexing import Cut, IndexItem, Item, index
from memlint.analysis.axes.model import (
    OPAQUE,
    Axis,
    Layout,
    Loose,
    Size,
    channels_last,
    dense,
    dense_any_rank,
    fortran,
    in_order,
    resolve,
    unknown_strides,
)
from memlint.analysis.axes.pattern import rearrange
from memlint.analysis.axes.queries import channels_last as channels_last_format
from memlint.analysis.axes.queries import (
    contiguous,
    fastest_axis,
    non_overlapping_and_dense,
    stride_order,
    strides,
)
from memlint.analysis.axes.reshape import flatten, reshape, resolve_sizes, unflatten
from memlint.analysis.axes.views import (
    NOT_KNOWN,
    NotKnown,
    diagonal,
    expand,
    give_rank,
    movedim,
    narrow,
    permute,
    reverse,
    select,
    slice_axis,
    split,
    squeeze,
    t,
    transpose,
    unfold,
    unsqueeze,
)

__all__ = [
    "NOT_KNOWN",
    "OPAQUE",
    "Axis",
    "Cut",
    "IndexItem",
    "Item",
    "Layout",
    "Loose",
    "NotKnown",
    "Size",
    "broadcast_sizes",
    "channels_last",
    "channels_last_format",
    "contiguous",
    "converted",
    "dense",
    "dense_any_rank",
    "diagonal",
    "elementwise",
    "expand",
    "fastest_axis",
    "flatten",
    "fortran",
    "give_rank",
    "in_order",
    "index",
    "movedim",
    "narrow",
    "natural",
    "non_overlapping_and_dense",
    "permute",
    "preserved",
    "rearrange",
    "reshape",
    "resolve",
    "resolve_sizes",
    "reverse",
    "select",
    "slice_axis",
    "split",
    "squeeze",
    "stride_order",
    "strides",
    "t",
    "transpose",
    "unflatten",
    "unfold",
    "unknown_strides",
    "unsqueeze",
]
