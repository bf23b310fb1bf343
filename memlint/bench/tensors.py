"""Operands of benches that use torch, which is imported when they are made."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from memlint.bench.pair import Size

_KEPT = 32


def normal(size: Size, *shape: int, seed: int = 0) -> Any:
    """A new tensor of normal numbers on the device and in the number type of ``size``, float32
    where it has none; with the same numbers for the same ``seed``."""
    import torch

    dtype = getattr(torch, size.dtype or "float32")
    return _drawn(shape, seed).to(device=size.device, dtype=dtype, copy=True)


def on_host(*shape: int, seed: int = 0) -> Any:
    """A new float32 tensor of normal numbers in pageable memory."""
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# Drawing takes several times as long as copying, and a comparison makes many sets of the same.
@lru_cache(_KEPT)
def _drawn(shape: tuple[int, ...], seed: int) -> Any:
    return on_host(*shape, seed=seed)
