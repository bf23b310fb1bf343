"""Several operations of a run that belong together, found among its records afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from memlint.layout import is_channels_last
from memlint.tracer.operands import ELEMENTWISE, is_large
from memlint.tracer.records import (
    FORWARD,
    LostFormat,
    MixedFormats,
    Operand,
    Operation,
    Repeated,
    Site,
    StoredScores,
)

_UNCHANGING = frozenset(
    {"bmm", "_softmax", "_safe_softmax", "view", "_unsafe_view", "expand", "detach", "alias",
     "transpose", "t", "unsqueeze", "_reshape_alias"}
)  # fmt: skip
"""Operations that leave scores what they are, or are the attention itself."""


_DROPPING = frozenset({"native_dropout", "bernoulli_", "mul", "mul_", "div", "div_", "empty_like",
                       "copy_", "_to_copy", "clone"})  # fmt: skip
"""What is done to weights on their way to the values: dropout, a cast."""


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
        if makers and takers and not _are_wanted(softmax, forward):
            scale = _scale(softmax, forward, flat)
            ends = _only(softmax, makers), _only(softmax, takers)
            plain = scale is not None and None not in ends
            before, after = ends if plain else (None, None)
            drops = _drops(softmax, forward)
            yield StoredScores(
                softmax, _inputs(softmax, forward), before, after, scale or 1.0, drops
            )


def _are_wanted(softmax: Operation, forward: Sequence[Operation]) -> bool:
    """Whether the weights that a softmax gives are used for something else as well."""
    if not softmax.results:
        return False
    place = next(n for n, one in enumerate(forward) if one is softmax)
    return any(
        one.short not in _UNCHANGING | _DROPPING
        and _beside(one, softmax)
        and softmax.results[0] in one.operands
        and _end(one.site) > _end(softmax.site)
        for one in forward[place + 1 :]
    )


def _inputs(softmax: Operation, forward: Sequence[Operation]) -> tuple[Operation, ...]:
    """What torch's own attention scales at the place where it is called."""
    return tuple(
        one
        for one in forward
        if one.site == softmax.site and one.short == "mul" and len(one.operands) == 1
    )


def _beside(one: Operation, other: Operation) -> bool:
    """Whether two operations run in the same function, as often."""
    same = (one.site.path, one.site.function) == (other.site.path, other.site.function)
    return same and one.count == other.count


def _only(softmax: Operation, products: Sequence[Operation]) -> Operation | None:
    found = [one for one in products if _beside(one, softmax) and one.short == "bmm"]
    return found[0] if len(found) == 1 else None


def _scale(softmax: Operation, forward: Sequence[Operation], flat: tuple[int, ...]) -> float | None:
    """What the scores are multiplied by; ``None`` where more than that happens to them."""
    shapes = (softmax.operands[0].array.shape, flat)
    if softmax.arguments[1:2] not in ((-1,), (len(shapes[0]) - 1,)):
        return None
    scale = 1.0
    for one in forward:
        site = one.site
        if (site.path, site.function) != (softmax.site.path, softmax.site.function):
            continue
        taken = [operand.array.shape for operand in one.operands[:1]]
        if not any(shape in shapes for shape in taken) or one.short in _UNCHANGING:
            continue
        if one.short not in ("mul", "div") or len(one.operands) != 1 or not _beside(one, softmax):
            return None
        factor = one.arguments[1] if len(one.arguments) > 1 else None
        if not isinstance(factor, (int, float)) or not factor:
            return None
        scale = scale * factor if one.short == "mul" else scale / factor
    return scale


def repeated_arrays(operations: Sequence[Operation]) -> Iterator[Repeated]:
    """What ``repeat`` makes, with the first elementwise operation that takes such an array."""
    forward = [one for one in operations if one.phase == FORWARD]
    for repeat in forward:
        if repeat.short != "repeat" or not repeat.results:
            continue
        made = repeat.results[0]
        takers = [
            (one, max(indices))
            for one in forward
            if one.short in ELEMENTWISE
            and _beside(one, repeat)
            and _end(one.site) >= _end(repeat.site)
            if len(one.operands) > 1
            # Where several operands have that layout, any of them stands for the others.
            if (indices := [n for n, other in enumerate(one.operands) if other == made])
        ]
        nearest = min(takers, key=lambda one: _end(one[0].site), default=None)
        yield Repeated(repeat) if nearest is None else Repeated(repeat, *nearest)


def _end(site: Site) -> tuple[int, int]:
    """Where a place ends, or its line where that is not known; what is around a place ends there
    or later."""
    return site.end_line or site.line, site.end_column


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
    paying = [(n, one, shape) for n, one in enumerate(forward)
              if (shape := _converts(one)) is not None]  # fmt: skip
    if not paying:
        return
    # Records come in the order in which they ran for the first time.
    for place, one in enumerate(forward):
        shape = _loses(one)
        if shape is None or all(n <= place or shape != taken for n, _, taken in paying):
            continue
        reached = _reached(one.results[0], forward[place + 1 :])
        paid = tuple(
            other
            for n, other, taken in paying
            if n > place and shape == taken and (reached is None or other.operands[0] in reached)
        )
        if paid:
            yield LostFormat(one, paid)


def _reached(start: Operand, later: Sequence[Operation]) -> set[Operand] | None:
    """The layouts that later operations can have made of one, the first one included; ``None``
    where that is not known, as a profiler does not tell what all operators give."""
    found = {start}
    for one in later:
        if not found.isdisjoint(one.operands):
            if not one.results:
                return None
            found.update(one.results)
    return found


def mixed_formats(
    operations: Sequence[Operation], known: Sequence[Operation]
) -> Iterator[MixedFormats]:
    """Convolutions of operands in two formats, those aside of which this is known otherwise."""
    told = {(one.site, one.operands) for one in known}
    for one in operations:
        if one.short != "convolution" or one.phase != FORWARD or (one.site, one.operands) in told:
            continue
        image, weight = one.operands[:2]
        if is_large(image) and is_nchw(image) and is_nhwc(weight):
            yield MixedFormats(one, 0)
        elif is_large(image) and is_nhwc(image) and is_nchw(weight):
            yield MixedFormats(one, 1)


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
