"""Memory formats of convolutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import decided, is_slower, over, unclear
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import Pair, Size
from memlint.bench.quantities import ratio
from memlint.bench.results import Answer, Row, Verdict


@dataclass(frozen=True, slots=True)
class Shape:
    """A convolution: channels in and out, rows and columns of its kernel, its stride and groups,
    and rows and columns of its input."""

    label: str
    channels: int
    out: int
    kernel: int
    stride: int
    groups: int
    pixels: int
    quick: bool = True


SHAPES = (
    Shape("stem of 3 channels", 3, 64, 7, 2, 1, 112),
    Shape("64 channels, 3 x 3", 64, 64, 3, 1, 1, 28),
    Shape("256 channels, 3 x 3", 256, 256, 3, 1, 1, 14, quick=False),
    Shape("256 channels, 1 x 1", 256, 256, 1, 1, 1, 14),
    Shape("128 channels in 32 groups", 128, 128, 3, 1, 32, 28, quick=False),
    Shape("depthwise, 128 channels", 128, 128, 3, 1, 128, 28),
)
_BATCH, _BATCH_FULL, _BATCH_CUDA = 2, 8, 32
_CUDA_PIXELS = 2


class ConvolutionFormat(Experiment):
    """Convolutions of NCHW against channels_last, for several shapes.

    Input and weights are in the same format, made before the clock runs; no gradients. On the CPU
    in float32, in a full run in bfloat16 as well; on CUDA (`--device cuda`) in half precision."""

    name = "convolution-format"
    needs = ("torch",)

    def run(self, lab: Lab) -> Found:
        """Compare for each shape."""
        rows = tuple(
            lab.compare(
                _pair(shape, batch_of(lab), dtype, lab.plan.device),
                Forms(
                    self.name, "NCHW", "channels_last", shape.label, batch_of(lab), dtype
                ),
            )
            for dtype in dtypes_of(lab)
            for shape in SHAPES
            if shape.quick or lab.plan.full
        )  # fmt: skip
        return Found(rows=rows, answers=(format_answer(rows),))


def batch_of(lab: Lab) -> int:
    """Images at once."""
    if lab.plan.size is not None:
        return lab.plan.size
    if lab.plan.device.startswith("cuda"):
        return _BATCH_CUDA
    return _BATCH_FULL if lab.plan.full else _BATCH


def dtypes_of(lab: Lab) -> Iterator[str]:
    """Number types of a run."""
    on_cuda = lab.plan.device.startswith("cuda")
    yield lab.plan.dtype or ("float16" if on_cuda else "float32")
    if lab.plan.full and lab.plan.dtype is None:
        yield "float32" if on_cuda else "bfloat16"


def _pair(shape: Shape, batch: int, dtype: str, device: str) -> Pair:
    import torch
    from torch.nn import functional

    pixels = shape.pixels * (_CUDA_PIXELS if device.startswith("cuda") else 1)

    def operands() -> tuple[Any, ...]:
        draw = torch.Generator().manual_seed(0)
        per_group = shape.channels // shape.groups
        images = torch.randn(batch, shape.channels, pixels, pixels, generator=draw)
        weights = torch.randn(shape.out, per_group, shape.kernel, shape.kernel, generator=draw)
        # Outputs of about 1, so that the rounding of half precision stays small.
        weights /= (per_group * shape.kernel**2) ** 0.5
        plain = [one.to(device, getattr(torch, dtype)) for one in (images, weights)]
        return *plain, *(one.to(memory_format=torch.channels_last) for one in plain)

    def convolve(images: Any, weights: Any) -> Any:
        with torch.inference_mode():
            return functional.conv2d(
                images, weights, None, shape.stride, shape.kernel // 2, 1, shape.groups
            )

    return Pair(
        as_is=lambda images, weights, last_images, last_weights: convolve(images, weights),
        alternative=lambda images, weights, last_images, last_weights: convolve(
            last_images, last_weights
        ),
        operands=operands,
        # What goes into a layer has just come out of the one before it.
        rotate=False,
        what=f"{shape.label}, {batch} of {pixels} x {pixels}, {dtype}",
        settle=Size(batch, dtype, device, 1).settle,
    )


def format_answer(rows: Sequence[Row]) -> Answer:
    """Whether channels_last is faster."""
    faster = sum(map(is_slower, rows))
    slower = sum(row.verdict is Verdict.FASTER for row in rows)
    times = ", ".join(f"{row.variant} ({row.dtype}) {ratio(row.ratio)}" for row in decided(rows))
    return Answer(
        "channels-last",
        over(rows, is_slower, is_slower),
        f"channels_last is faster in {faster} of {len(rows)} cases and slower in {slower} (NCHW "
        f"over channels_last: {times}){unclear(rows)}",
    )
