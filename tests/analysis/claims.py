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
    """Whether the spans of memory that two arrays reach over overlap."""
    (first, last), (start, end) = _span(one), _span(two)
    return first < end and start < last


def _span(real: Any) -> tuple[int, int]:
    if not hasattr(real, "data_ptr") and not hasattr(real, "ctypes"):
        return 0, 0
    at = real.data_ptr() if hasattr(real, "data_ptr") else real.ctypes.data
    reach = [
        (size - 1) * step * real.itemsize
        for size, step in zip(real.shape, steps_of(real), strict=True)
    ]
    low = sum(step for step in reach if step < 0)
    return at + low, at + sum(step for step in reach if step > 0) + int(real.itemsize)


def contradictions(
    claim: Value,
    real: Any,
    sources: dict[Site, Any],
    tally: Tally,
    where: str,
    idle: tuple[int, ...] | None = None,
) -> list[str]:
    """What is wrong with ``claim``; empty where all of it holds.

    What is said for generic sizes is not asked of a result of the shape ``idle``: a slice
    or an expansion that leaves all as it was.
    """
    if isinstance(claim, Sequence) and isinstance(real, tuple | list):
        parts = claim.items if claim.items is not None else (claim.element,) * len(real)
        if len(parts) != len(real):
            return [f"{where}: {len(parts)} items for {len(real)}"]
        found = []
        for part, one in zip(parts, real, strict=True):
            found += contradictions(part, one, sources, tally, where, idle)
        return found
    if isinstance(claim, Const) and isinstance(real, int | bool):
        return [] if claim.value == real else [f"{where}: {claim.value} for {real}"]
    if isinstance(claim, Tensor) and hasattr(real, "shape") and hasattr(real, "dtype"):
        return [f"{where}: {text}" for text in _of_tensor(claim, real, sources, tally, idle)]
    if isinstance(claim, Tensor):
        return [f"{where}: an array for {type(real).__name__}"]
    return []


def _of_tensor(
    claim: Tensor,
    real: Any,
    sources: dict[Site, Any],
    tally: Tally,
    idle: tuple[int, ...] | None,
) -> list[str]:
    shape = tuple(real.shape)
    found = []
    if claim.layout.rank not in (None, len(shape)):
        return [f"rank {claim.layout.rank} for {shape}"]
    sizes = claim.sizes or ()
    for said, true in zip(sizes, shape, strict=False):
        if isinstance(said, int) and said != true:
            found.append(f"size {said} of {sizes} for {shape}")
    exact = all(isinstance(size, int) for size in claim.sizes or (None,))
    generic = (exact or shape != idle) and generic_sizes(claim, shape)
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


def generic_sizes(claim: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether each axis of size 1 is known to be one."""
    if claim.sizes is None:
        return all(size > 1 for size in shape)
    return all(said == 1 or true > 1 for said, true in zip(claim.sizes, shape, strict=True))


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
