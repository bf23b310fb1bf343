"""Several operations of a run that belong together, found among its records afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from memlint.layout import is_channels_last
from memlint.tracer.operands import is_large
from memlint.tracer.records import FORWARD, LostFormat, Operand, Operation, StoredScores


def attentions(operations: Sequence[Operation]) -> Iterator[StoredScores]:
    """Softmax between two products, as attention is."""
    forward = [one for one in operations if one.phase == FORWARD]
    products = [one for one in forward if one.short in ("bmm", "mm", "baddbmm")]
    for softmax in forward:
        if softmax.short not in ("_softmax", "_safe_softmax"):
            continue
        shape = softmax.operands[0].array.shape
        if len(shape) < 3:
            continue
        flat = (prod(shape[:-2]), *shape[-2:])
        makers = [one for one in products if one.results and one.results[0].array.shape == flat]
        takers = [one for one in products if one.operands[0].array.shape == flat]
        if makers and takers:
            yield StoredScores(softmax, _inputs(softmax, forward), _drops(softmax, forward))


def _inputs(softmax: Operation, forward: Sequence[Operation]) -> tuple[Operation, ...]:
    """What torch's own attention scales at the place where it is called."""
    return tuple(
        one
        for one in forward
        if one.site == softmax.site and one.short == "mul" and len(one.operands) == 1
    )


def _drops(softmax: Operation, forward: Sequence[Operation]) -> bool:
    """Whether numbers are drawn for each of the weights where they are computed."""
    shape = softmax.operands[0].array.shape
    return any(
        one.site == softmax.site
        and one.short in ("native_dropout", "bernoulli_", "bernoulli")
        and one.operands[0].array.shape == shape
        for one in forward
    )


def lost_formats(operations: Sequence[Operation]) -> Iterator[LostFormat]:
    """Operations that give up channels_last, where something converts back to it."""
    forward = [one for one in operations if one.phase == FORWARD]
    paying = [(one, shape) for one in forward if (shape := _converts(one)) is not None]
    if not paying:
        return
    for one in forward:
        shape = _loses(one)
        paid = tuple(other for other, taken in paying if shape == taken)
        if shape is not None and paid:
            yield LostFormat(one, paid)


def is_nhwc(operand: Operand) -> bool:
    """Whether the strides are those of channels_last, and of no other format."""
    return is_channels_last(operand.array) and not operand.is_contiguous


def is_nchw(operand: Operand) -> bool:
    """Whether the strides are row-major, of four axes, and of no other format."""
    four = len(operand.array.shape) == 4
    return four and operand.is_contiguous and not is_channels_last(operand.array)


def _loses(operation: Operation) -> tuple[int, ...] | None:
    """The batch and channels of what comes out row-major though it went in channels_last."""
    if operation.short == "convolution" or not operation.fresh or not operation.results:
        return None
    result = operation.results[0]
    shape = result.array.shape
    went_in = [one for one in operation.operands if is_nhwc(one) and is_large(one)]
    if not went_in or not is_nchw(result):
        return None
    return shape[:2]


def _converts(operation: Operation) -> tuple[int, ...] | None:
    """The batch and channels of what is row-major and has to be made channels_last here."""
    if not operation.operands or not is_nchw(operation.operands[0]):
        return None
    if not is_large(operation.operands[0]):
        return None
    shape = operation.operands[0].array.shape[:2]
    if operation.short == "convolution":
        return shape if is_nhwc(operation.operands[1]) else None
    copies = operation.short in ("clone", "_to_copy") and operation.results
    return shape if copies and is_nhwc(operation.results[0]) else None
