"""Symbolic layouts of arrays and the operations on them.

Every operation is pure and total: on input that the program could not have meant it falls
back to a layout about which less is known, and never raises.
"""

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
    unknown_strides,
)

__all__ = [
    "OPAQUE",
    "Axis",
    "Layout",
    "Loose",
    "Size",
    "channels_last",
    "dense",
    "dense_any_rank",
    "fortran",
    "in_order",
    "unknown_strides",
]
