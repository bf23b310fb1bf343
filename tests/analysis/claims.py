"""Whether what is said of an array is true of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memlint.analysis.axes import (
    channels_last_format,
    contiguous,
    fastest_axis,
    stride_order,
    strides,
)
from memlint.analysis.values import Const, Sequence, Site, Tensor, Value


@dataclass
class Tally:
    """How often a layout was settled, and how often not."""

    settled: int = 0
    open: int = 0


def steps_of(real: Any) -> tuple[int, ...]:
    """Strides in elements."""
    if hasattr(real, "stride"):
        return tuple(real.stride())
    return tuple(step // real.itemsize for step in real.strides)


def is_contiguous(real: Any) -> bool:
    if hasattr(real, "stride"):
        return bool(real.is_contiguous())
    return bool(real.flags.c_contiguous)


def shares_memory(one: Any, two: Any) -> bool:
    import numpy
    import torch

    one, two = (
        value.detach().numpy() if isinstance(value, torch.Tensor) else value for value in (one, two)
    )
    return bool(numpy.may_share_memory(one, two))


def contradictions(
    claim: Value, real: Any, sources: dict[Site, Any], tally: Tally, where: str
) -> list[str]:
    """What is wrong with ``claim``; empty where all of it holds."""
    if isinstance(claim, Sequence) and isinstance(real, tuple | list):
        parts = claim.items if claim.items is not None else (claim.element,) * len(real)
        if len(parts) != len(real):
            return [f"{where}: {len(parts)} items for {len(real)}"]
        found = []
        for part, one in zip(parts, real, strict=True):
            found += contradictions(part, one, sources, tally, where)
        return found
    if isinstance(claim, Const) and isinstance(real, int | bool):
        return [] if claim.value == real else [f"{where}: {claim.value} for {real}"]
    if isinstance(claim, Tensor) and hasattr(real, "shape") and hasattr(real, "dtype"):
        return [f"{where}: {text}" for text in _of_tensor(claim, real, sources, tally)]
    if isinstance(claim, Tensor):
        return [f"{where}: an array for {type(real).__name__}"]
    return []


def _of_tensor(claim: Tensor, real: Any, sources: dict[Site, Any], tally: Tally) -> list[str]:
    shape = tuple(real.shape)
    found = []
    if claim.layout.rank not in (None, len(shape)):
        return [f"rank {claim.layout.rank} for {shape}"]
    sizes = claim.sizes or ()
    for said, true in zip(sizes, shape, strict=False):
        if isinstance(said, int) and said != true:
            found.append(f"size {said} of {sizes} for {shape}")
    generic = all(size > 1 for size in shape) or (
        claim.sizes is not None and all(s == 1 for s, t in zip(sizes, shape, strict=True) if t == 1)
    )
    if 0 not in shape:
        found += _of_strides(claim, real, generic, tally)
    dtype = str(real.dtype).removeprefix("torch.")
    if claim.dtype not in (None, dtype):
        found.append(f"dtype {claim.dtype} for {dtype}")
    if claim.devices and "cpu" not in claim.devices:
        found.append(f"devices {claim.devices} for cpu")
    numel = 1
    for size in shape:
        numel *= size
    if claim.site is not None and numel:
        for site, source in sources.items():
            if shares_memory(real, source) != (site is claim.site):
                found.append(f"storage {'shared' if site is claim.site else 'its own'}, not so")
    return found


def _of_strides(claim: Tensor, real: Any, generic: bool, tally: Tally) -> list[str]:
    found = []
    shape, steps = tuple(real.shape), steps_of(real)
    said = contiguous(claim.layout)
    tally.open += said is None
    tally.settled += said is not None
    true = is_contiguous(real)
    if said is not None and said != true and (generic or said):
        found.append(f"contiguous {said} for {shape} {steps}")
    if len(shape) in (4, 5) and hasattr(real, "stride"):
        import torch

        form = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        said = channels_last_format(claim.layout)
        if said not in (None, real.is_contiguous(memory_format=form)) and (generic or said):
            found.append(f"channels last {said} for {shape} {steps}")
    known = strides(claim.layout)
    live = [n for n, size in enumerate(shape) if size > 1]
    if known is not None and [known[n] for n in live] != [steps[n] for n in live]:
        found.append(f"strides {known} for {steps} of {shape}")
    if generic:
        found += _of_order(claim, shape, steps)
    return found


def _of_order(claim: Tensor, shape: tuple[int, ...], steps: tuple[int, ...]) -> list[str]:
    found = []
    moving = [n for n, size in enumerate(shape) if size > 1 and steps[n]]
    fastest = fastest_axis(claim.layout)
    if fastest is not None and moving:
        here = fastest % len(shape)
        if abs(steps[here]) > min(abs(steps[n]) for n in moving):
            found.append(f"fastest axis {fastest} for {steps} of {shape}")
    order = stride_order(claim.layout)
    if order:
        walked = [abs(steps[n]) for n in order if shape[n] > 1]
        if walked != sorted(walked, reverse=True):
            found.append(f"stride order {order} for {steps} of {shape}")
    return found
