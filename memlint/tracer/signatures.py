"""Tensors and arguments as plain data.

While the program runs, a tensor is its signature: shape, strides, dtype, device, whether it is
pinned.  Signatures are made into :class:`Operand` records afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from memlint.layout import Strided
from memlint.tracer.records import Argument, Hole, Opaque, Operand

Signature = tuple[Any, ...]
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
LONGEST_LIST = 64


def tensors_in(values: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among arguments, and in the lists among them, in their order."""
    found: list[torch.Tensor] = []
    for value in values:
        kind = type(value)
        if kind in PLAIN:
            found.append(value)
        elif kind is list or kind is tuple:
            found.extend(one for one in value[:LONGEST_LIST] if isinstance(one, torch.Tensor))
        elif isinstance(value, torch.Tensor):
            found.append(value)
    return found


def signature(tensor: torch.Tensor) -> Signature:
    """What records tell operands apart by; pinning is asked for apart, since that is slow.

    Of tensors that have no shape of numbers, those of ``torch.nested``, it has none either."""
    if _is_ragged(tensor):
        return ((), (), tensor.dtype, tensor.device)
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    return (tensor.shape, strides, tensor.dtype, tensor.device)


_NAMED = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def _is_ragged(tensor: torch.Tensor) -> bool:
    return tensor.is_nested or (
        type(tensor) not in PLAIN and any(type(size) is not int for size in tensor.shape)
    )


def is_stand_in(kind: type) -> bool:
    """Whether tensors of a type only stand for others, while torch reasons about shapes."""
    return hasattr(kind, "_mode_key")


def has_strides(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies in a storage of its own kind, by strides."""
    return type(tensor) in PLAIN and tensor.layout is torch.strided and not tensor.is_nested


def is_odd(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies by strides, but not row-major."""
    try:
        # Most are row-major: that is asked first.
        return not tensor.is_contiguous() and has_strides(tensor)
    except RuntimeError:
        return False


storage_of: Callable[[torch.Tensor], int] = torch._C._storage_address  # type: ignore[attr-defined]
"""The identity of a tensor's storage while it is alive."""


def operand_of(made: Signature, *, pinned: bool = False) -> Operand:
    """A signature as plain data."""
    shape, strides, dtype, device = made
    array = Strided(tuple(shape), tuple(strides), dtype.itemsize)
    return Operand(array, str(dtype).removeprefix("torch."), str(device), pinned)


def plain(value: Any, holes: Iterator[int]) -> Argument:
    """An argument as plain data."""
    if isinstance(value, torch.Tensor):
        return Hole(next(holes))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(plain(one, holes) for one in value[:LONGEST_LIST])
    # Of others the text can be long, and is made of their elements one by one: a storage's is.
    text = str(value) if isinstance(value, _NAMED) else ""
    return Opaque(type(value).__name__, text)
