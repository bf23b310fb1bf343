"""Copies to a GPU from pageable and from page-locked memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import is_slower, over, told
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import Pair, Size
from memlint.bench.results import Answer, Row, Verdict

_QUICK = (4 << 20, 64 << 20)
_FULL = (64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20)


class PinnedCopies(Experiment):
    """Copies to a GPU: pageable against page-locked memory, and with the pinning charged.

    Tensors of some sizes are copied to the device from memory of both kinds, to the end of the
    copy. Then `x.to(device)` against `x.pin_memory().to(device, non_blocking=True)`, as one would
    write it in a loop over batches: pinning is a copy of its own, made by the host."""

    name = "pinned-copies"
    needs = ("cuda",)

    def run(self, lab: Lab) -> Found:
        """Compare at each size."""
        sizes: tuple[int, ...] = _FULL if lab.plan.full else _QUICK
        if lab.plan.size is not None:
            sizes = (lab.plan.size,)
        device = lab.plan.device_of(self.needs)
        pinned = [
            lab.compare(
                pinned_pair(size, device),
                Forms(self.name, "from pageable memory", "from page-locked memory", "copy", size),
            )
            for size in sizes
        ]
        inline = [
            lab.compare(
                inline_pair(size, device),
                Forms(self.name, ".pin_memory() first", ".to(device)", "pin-then-copy", size),
            )
            for size in sizes
        ]
        return Found(rows=(*pinned, *inline), answers=tuple(pin_answers(pinned, inline)))


def pinned_pair(size: int, device: str) -> Pair:
    """Copies of so many bytes, from pageable and from page-locked memory."""
    import torch

    def operands() -> tuple[Any, ...]:
        plain = torch.arange(size, dtype=torch.uint8)
        return plain, plain.pin_memory()

    return Pair(
        as_is=lambda plain, pinned: plain.to(device),
        alternative=lambda plain, pinned: pinned.to(device, non_blocking=True),
        operands=operands,
        what=f"{size >> 10} KiB",
        nbytes=size,
        rotate=False,
        settle=Size(size, "", device, 1).settle,
    )


def inline_pair(size: int, device: str) -> Pair:
    """Copies of so many bytes of pageable memory, pinned first and not."""
    import torch

    return Pair(
        as_is=lambda plain: plain.pin_memory().to(device, non_blocking=True),
        alternative=lambda plain: plain.to(device),
        operands=lambda: (torch.arange(size, dtype=torch.uint8),),
        what=f"{size >> 10} KiB",
        nbytes=size,
        rotate=False,
        settle=Size(size, "", device, 1).settle,
    )


def pin_answers(pinned: Sequence[Row], inline: Sequence[Row]) -> list[Answer]:
    """``pinned`` are pageable over page-locked memory, ``inline`` pinning first over not."""
    plain = "; ".join(f"{row.what}: from pageable memory {told(row)}" for row in pinned)
    first = "; ".join(f"{row.what}: pinned first {told(row)}" for row in inline)
    return [
        Answer("pinned-copies", over(pinned, is_slower, is_slower), plain),
        Answer("pin-memory", over(inline, _wins, _wins), f"pinned by hand, on the way: {first}"),
    ]


def _wins(row: Row) -> bool:
    return row.verdict is Verdict.FASTER
