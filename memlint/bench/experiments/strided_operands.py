"""Operations on transposed operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import decided, is_slower, over, unclear, within
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import Pair, Size
from memlint.bench.quantities import ratio
from memlint.bench.results import Answer, Row

# No powers of two: there, the lines of a column compete for few sets of the cache as well.
_QUICK, _FULL = 1000, 2000
_CLAIMED = (3.0, 10.0)
_PAYS = 1.1


@dataclass(frozen=True, slots=True)
class Kind:
    """What ``apply`` does with a matrix and a dense one of the same shape, at one size in
    ``smaller`` of what is asked for."""

    apply: Callable[[Any, Any], Any]
    smaller: int = 1
    quick: bool = True


def _functions() -> Mapping[str, Kind]:
    import torch
    from torch.nn import functional

    return {
        "elementwise": Kind(lambda x, dense: torch.exp(x)),
        "mixed layouts": Kind(lambda x, dense: x + dense),
        "matmul": Kind(lambda x, dense: x @ dense, smaller=2),
        "sum over rows": Kind(lambda x, dense: x.sum(-1), quick=False),
        "softmax": Kind(lambda x, dense: x.softmax(-1)),
        "layer_norm": Kind(lambda x, dense: functional.layer_norm(x, x.shape[-1:]), quick=False),
        "cumsum": Kind(lambda x, dense: x.cumsum(-1)),
        "sort": Kind(lambda x, dense: x.sort(-1).values, smaller=2, quick=False),
    }


class StridedOperands(Experiment):
    """Operations of torch on a transposed operand, against the same on a dense one.

    Each operation reads a square matrix that is the transposed view of another one, or a dense copy
    of it. The ratio with conversion charges the dense form with the `.contiguous()` that makes it,
    for one use."""

    name = "strided-operands"
    needs = ("torch",)

    def run(self, lab: Lab) -> Found:
        """Compare for each kind of operation."""
        size = lab.plan.size or (_FULL if lab.plan.full else _QUICK)
        dtype = lab.plan.dtype or "float32"
        rows = tuple(
            lab.compare(
                _pair(kind, name, max(1, size // kind.smaller), dtype, lab.plan.device),
                Forms(self.name, "transposed", "dense", name, size // kind.smaller, dtype),
            )
            for name, kind in _functions().items()
            if kind.quick or lab.plan.full
        )
        return Found(rows=rows, answers=(strided_answer(rows), contiguous_answer(rows)))


def _pair(kind: Kind, name: str, size: int, dtype: str, device: str) -> Pair:
    import torch

    draw = torch.Generator().manual_seed(0)
    made, other = torch.rand(2, size, size, generator=draw).to(device, getattr(torch, dtype))

    def operands() -> tuple[Any, ...]:
        strided = made.clone().t()
        return strided, strided.contiguous(), other.clone()

    return Pair(
        as_is=lambda strided, same, dense: kind.apply(strided, dense),
        alternative=lambda strided, same, dense: kind.apply(same, dense),
        operands=operands,
        what=f"{name}, {dtype}, {size} x {size}",
        conversion=lambda strided, same, dense: strided.contiguous(),
        settle=Size(size, dtype, device, 1).settle,
    )


def strided_answer(rows: Sequence[Row]) -> Answer:
    """Whether operations are as much slower on a strided operand as is claimed."""
    slower = [row for row in rows if is_slower(row)]
    times = ", ".join(f"{row.variant} {ratio(row.ratio)}" for row in decided(rows))
    return Answer(
        "strided",
        over(rows, lambda row: within(row.ratio, *_CLAIMED), is_slower),
        f"{len(slower)} of {len(rows)} kinds of operations are measurably slower ({times} times)"
        f"{unclear(rows)}",
    )


def contiguous_answer(rows: Sequence[Row]) -> Answer:
    """Whether a copy that is used once pays."""
    paid = [row.variant for row in rows if _pays(row)]
    return Answer(
        "contiguous",
        over(rows, _pays, _pays),
        f"with its copy charged to one use, it pays for {len(paid)} of {len(rows)} kinds of "
        f"operations ({', '.join(paid) or 'none'}){unclear(rows)}",
    )


def _pays(row: Row) -> bool:
    return is_slower(row) and row.net_ratio is not None and row.net_ratio > _PAYS
