"""Copies that kernels make of their operands, which no dispatch mode sees.

torch's own convolutions on the host copy an operand that does not have the format of the other
one; on a GPU, kernels of cuDNN convert formats.  What a library does within a single call, as
oneDNN where it reorders to a format of its own, no profiler sees either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memlint.kineto.kernels import converter
from memlint.layout import classify
from memlint.measure import LEAST_CLAIM
from memlint.tracer.located import Located
from memlint.tracer.profiler_events import COPY, Kernel
from memlint.tracer.records import InnerCopy, Operand, Operation

CONVOLVING = frozenset({"convolution", "convolution_backward", "_convolution", "conv2d"})

_Key = tuple[int, int | None, Operand | None, Operand | None, str]


def inner_copies(placed: Sequence[Located], kernels: Iterable[Kernel]) -> list[InnerCopy]:
    """The copies within convolutions, those of one operand to one layout together."""
    found: dict[_Key, InnerCopy] = {}
    for one in [*_copies(placed), *_conversions(placed, list(kernels))]:
        key = (id(one.operation), one.index, one.operand, one.copied, one.kernel)
        known = found.get(key)
        if known is None:
            found[key] = one
        else:
            known.count += one.count
            known.seconds += one.seconds
    return list(found.values())


def makes_a_difference(copy: InnerCopy) -> bool:
    """Whether the operation would be faster without the copy, by what was seen."""
    return copy.ratio >= LEAST_CLAIM


def _copies(placed: Sequence[Located]) -> Iterator[InnerCopy]:
    whole = _times(placed)
    for one in placed:
        operation, event = one.operation, one.event
        if operation is None or operation.short not in CONVOLVING or event.name != COPY:
            continue
        if len(event.inputs) < 2:
            continue
        copied, operand = event.inputs[:2]
        if is_reordering(operand, copied):
            yield InnerCopy(
                operation,
                index_of(operand, operation),
                operand,
                copied,
                COPY,
                1,
                (event.end - event.start) / 1e9,
                whole[id(operation)],
            )


def _times(placed: Sequence[Located]) -> Mapping[int, float]:
    """The seconds that each operation took, by its identity."""
    depths: dict[int, int] = {}
    for one in placed:
        key = id(one.operation)
        depths[key] = min(one.depth, depths.get(key, one.depth))
    found: dict[int, float] = {}
    for one in placed:
        key = id(one.operation)
        if one.depth == depths[key]:
            found[key] = found.get(key, 0.0) + (one.event.end - one.event.start) / 1e9
    return found


def _conversions(placed: Sequence[Located], kernels: Sequence[Kernel]) -> Iterator[InnerCopy]:
    launched = {one.event.correlation: one.operation for one in placed}
    whole: Counter[int] = Counter()
    for kernel in kernels:
        whole[id(launched.get(kernel.correlation))] += kernel.end - kernel.start
    for kernel in kernels:
        operation = launched.get(kernel.correlation)
        if operation is None or operation.short not in CONVOLVING:
            continue
        if (name := converter(kernel.name)) is not None:
            seconds = (kernel.end - kernel.start) / 1e9
            within = whole[id(operation)] / 1e9
            yield InnerCopy(operation, None, None, None, name, 1, seconds, within)


def is_reordering(operand: Operand, copied: Operand) -> bool:
    """Whether a copy keeps dtype and device and changes the order of the axes."""
    if operand.array.shape != copied.array.shape or operand.dtype != copied.dtype:
        return False
    if operand.device != copied.device:
        return False
    return classify(operand.array) is not classify(copied.array)


def index_of(operand: Operand, operation: Operation) -> int | None:
    """Which operand of the operation it is."""
    for index, one in enumerate(operation.operands):
        if one.array == operand.array and one.dtype == operand.dtype:
            return index
    return None
