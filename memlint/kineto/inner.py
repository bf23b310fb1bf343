"""Copies that kernels of convolutions make of their operands, as a profiler shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memlint.kineto.operations import Timed
from memlint.tracer.inner_copies import index_of, is_reordering, makes_a_difference
from memlint.tracer.records import InnerCopy


def inner_copies(timed: Iterable[Timed], steps: int) -> Iterator[InnerCopy]:
    """The copies that make a difference, as they are in a step, of ``steps``."""
    for one in timed:
        for (copied, operand), seconds in one.copies.items():
            if not (operand.array.has_strides and copied.array.has_strides):
                continue
            if not is_reordering(operand, copied):
                continue
            copy = InnerCopy(
                one.operation,
                index_of(operand, one.operation),
                operand,
                copied,
                "aten::copy_",
                max(round(len(seconds) / steps), 1),
                sum(seconds) / steps,
                one.seconds / steps,
            )
            if makes_a_difference(copy):
                yield copy
