"""Operands of a traced run made anew, to be replayed: several sets that outlast the caches."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from memlint.layout import span
from memlint.tracer.records import Operand

_DRAWN = 1 << 20
_DRAWABLE = frozenset(
    {"float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "uint8",
     "int8", "int16", "int32", "int64"}
)  # fmt: skip


def can_be_made(operand: Operand) -> bool:
    """Whether random numbers can be drawn for an operand, and have a place to be."""
    return operand.kind != "meta" and operand.dtype in _DRAWABLE


def bytes_of(operands: Sequence[Operand]) -> int:
    """The memory that one set of operands takes."""
    return sum(span(one.array) * one.array.itemsize for one in operands)


def remade(operands: Sequence[Operand], rows: int, sets: int) -> list[list[torch.Tensor]]:
    """``sets`` times the operands, with the same numbers each time, in memory of their own.

    Indices among them lie below ``rows``."""
    every = [_copies(one, rows, sets) for one in operands]
    return [list(one) for one in zip(*every, strict=True)] if every else [[] for _ in range(sets)]


def _copies(operand: Operand, rows: int, sets: int) -> list[torch.Tensor]:
    array = operand.array
    dtype = getattr(torch, operand.dtype)
    # A flat tensor can be filled also where elements of the view share their memory.
    flat = torch.empty(sets, max(span(array), 1), dtype=dtype, device=operand.device)
    _fill(flat[0], rows)
    flat[1:] = flat[0]
    return [one.as_strided(array.shape, array.strides) for one in flat]


def _fill(flat: torch.Tensor, rows: int) -> None:
    """Random numbers; in large tensors they come again and again, since drawing takes long."""
    drawn = flat[:_DRAWN]
    if flat.dtype.is_floating_point or flat.dtype.is_complex:
        drawn.normal_()
    elif flat.dtype is torch.bool:
        drawn.random_(0, 2)
    else:
        drawn.random_(0, min(rows, torch.iinfo(flat.dtype).max))
    for start in range(_DRAWN, flat.numel(), _DRAWN):
        part = flat[start : start + _DRAWN]
        part.copy_(drawn[: part.numel()])
