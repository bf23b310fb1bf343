"""Operands of benches that use torch, which is imported when they are made."""

from __future__ import annotations

from typing import Any

from memlint.bench.pair import Size


def normal(size: Size, *shape: int, seed: int = 0) -> Any:
    """A tensor of normal numbers on the device and in the number type of ``size``, float32 where
    it has none; the same for the same ``seed``."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=generator)
    return made.to(device=size.device, dtype=getattr(torch, size.dtype or "float32"))


def on_host(*shape: int, seed: int = 0) -> Any:
    """A float32 tensor of normal numbers in pageable memory."""
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
