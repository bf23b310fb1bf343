"""From what rules claim to two ways of running it that can be timed against each other.

Only what depends on nothing but its operands is replayed.  Operands are made anew from what
the records say of them: shape, strides, dtype, device; their values are random ones that the
operation takes on its usual path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from memlint.caches import MOST_BYTES, count_of_sets
from memlint.measure import Run
from memlint.tracer.operands import ELEMENTWISE, LOOKUPS, NORMALISING, REDUCTIONS, work_of
from memlint.tracer.records import Argument, Growth, Hole, Opaque, Operand, Operation
from memlint.tracer.remade import bytes_of, can_be_made, remade
from memlint.tracer.sightings import (
    CHANNELS_LAST,
    DENSE,
    AnyClaim,
    Claim,
    ExpandInstead,
    FuseAttention,
    JoinOnce,
    Part,
)

DERIVATIVES = frozenset(
    {"threshold_backward", "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward"}
)
COMPARISONS = frozenset({"eq", "lt", "gt", "le", "ge"})
PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "convolution"})
REPLAYABLE = (
    ELEMENTWISE | DERIVATIVES | COMPARISONS | REDUCTIONS | NORMALISING | LOOKUPS | PRODUCTS
    | {"norm", "cat", "clone", "repeat", "_to_copy"}
)  # fmt: skip
_CHOOSING = frozenset({"max", "min", "argmax", "argmin"})
_MOST_JOINED, _IN_A_ROW = 12, 4
_MATH = 0


@dataclass(frozen=True, slots=True)
class Experiment:
    """Two ways of doing the same thing, each ready to be run.

    ``conversion`` has to be paid once for every ``uses`` of the alternative, ``None`` where it
    costs nothing.  One run stands for ``events`` of those that the finding counts.  ``results``
    gives what both ways compute, pair by pair, so far as it has to be the same.
    """

    as_is: Run
    alternative: Run
    results: Callable[[], Sequence[tuple[Any, Any]]]
    operands: tuple[Operand, ...]
    conversion: Run | None = None
    uses: float = 1.0
    events: int = 1


def experiment(claim: AnyClaim) -> Experiment | None:
    """What a claim says, to be run; ``None`` where it cannot be replayed."""
    match claim:
        case JoinOnce(growth):
            return _joining(growth)
        case ExpandInstead():
            return _expanding(claim)
        case FuseAttention():
            return _fusing(claim)
    return _in_form(claim)


# Operands of another form


def _in_form(claim: Claim) -> Experiment | None:
    parts = claim.parts or (Part(claim.operation, claim.dense),)
    functions = [_replayed_by(part.operation) for part in parts]
    nbytes = sum(bytes_of(part.operation.operands) for part in parts)
    if any(one is None for one in functions) or nbytes * 2 > MOST_BYTES:
        return None
    sets = count_of_sets(nbytes)
    plays = [
        _Play(function, part, claim.form, sets)
        for function, part in zip(functions, parts, strict=True)
        if function is not None
    ]

    def as_is(number: int) -> None:
        for play in plays:
            play.as_is(number)

    def other(number: int) -> None:
        for play in plays:
            play.other(number)

    return Experiment(
        as_is,
        other,
        lambda: [pair for play in plays for pair in play.results()],
        tuple(one for part in parts for one in part.operation.operands),
        _converting(claim) if claim.charged else None,
        claim.uses,
    )


class _Play:
    """One part of a claim, ready to be run."""

    def __init__(self, function: Callable[..., Any], part: Part, form: str, sets: int) -> None:
        self._part = part
        made = remade(part.operation.operands, _rows(part.operation), sets)
        formed = [
            [in_form(t, form) if i in part.dense else t for i, t in enumerate(one)] for one in made
        ]
        self._as_is = _runner(function, part.operation, made)
        self._other = _viewer(formed, part) if part.vanishes else (
            _runner(function, part.operation, formed)
        )  # fmt: skip

    def as_is(self, number: int) -> None:
        """Run the operation as it ran."""
        for one in range(self._part.times):
            self._as_is(number + one)

    def other(self, number: int) -> None:
        """Run it with operands of the other form."""
        for one in range(self._part.times):
            self._other(number + one)

    def results(self) -> Sequence[tuple[Any, Any]]:
        """What both ways compute, so far as it has to be the same."""
        one, other = self._as_is(0), self._other(0)
        if self._part.operation.short not in _CHOOSING:
            return [(one, other)]
        # Of equal numbers either may be chosen: positions say nothing.
        pairs = zip(*map(_tensors, (one, other)), strict=True)
        return [(a, b) for a, b in pairs if a.dtype is not torch.int64]


def _tensors(result: Any) -> Sequence[torch.Tensor]:
    return result if isinstance(result, (tuple, list)) else (result,)


def _viewer(sets: Sequence[Sequence[torch.Tensor]], part: Part) -> Callable[[int], Any]:
    """What is left of a copy of an array that has the form already: a view of it."""
    index = part.dense[0]
    copied = [one[index] for one in sets]

    def view(number: int) -> torch.Tensor:
        return torch.ops.aten.alias.default(copied[number % len(copied)])  # type: ignore[no-any-return]

    return view


def in_form(tensor: torch.Tensor, form: str) -> torch.Tensor:
    """A tensor made row-major, channels_last, or of another dtype."""
    if form == DENSE:
        return tensor.contiguous()
    if form == CHANNELS_LAST:
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor.to(getattr(torch, form))


def _converting(claim: Claim) -> Run:
    """Gives the form to what the claim charges for."""
    charged = claim.dense[:1] if claim.parts else claim.dense
    operands = [claim.operation.operands[index] for index in charged]
    made = remade(operands, _rows(claim.operation), count_of_sets(bytes_of(operands)))
    form = claim.form

    def convert(number: int) -> object:
        return [in_form(one, form) for one in made[number % len(made)]]

    return convert


# Arrays that grow


def _joining(growth: Growth) -> Experiment | None:
    """Some of the concatenations, spread evenly over the growth, against one of as many parts.

    What has grown was written a moment ago, and may still be in the caches: so several follow
    each other wherever some are taken."""
    sizes = sizes_of_growth(growth)
    if sizes is None:
        return None
    axis, piece, lengths = sizes
    last = growth.largest.array
    row = last.elements // last.shape[axis] * last.itemsize
    if not can_be_made(growth.largest):
        return None
    if row * (sum(lengths) + len(lengths) * piece) * 2 > MOST_BYTES:
        return None

    def make(length: int) -> torch.Tensor:
        shape = (*last.shape[:axis], length, *last.shape[axis + 1 :])
        made = torch.empty(shape, dtype=dtype, device=growth.largest.device)
        return made.normal_() if made.dtype.is_floating_point else made.zero_()

    dtype = getattr(torch, growth.largest.dtype)
    pieces = [make(piece) for _ in lengths]
    begins = [
        number == 0 or length != lengths[number - 1] + piece
        for number, length in enumerate(lengths)
    ]
    before = [
        make(length) if first else None for length, first in zip(lengths, begins, strict=True)
    ]

    def as_is(number: int) -> None:
        grown = pieces[0]
        for start, part in zip(before, pieces, strict=True):
            before_it = grown if start is None else start
            grown = torch.cat([before_it, part], axis)  # memlint: ignore[concat-in-loop]

    def other(number: int) -> torch.Tensor:
        return torch.cat(pieces, axis)

    def results() -> Sequence[tuple[Any, Any]]:
        grown = reduce(lambda one, more: torch.cat([one, more], axis), pieces)
        return [(grown, other(0))]

    return Experiment(as_is, other, results, (growth.largest,), events=len(lengths))


def sizes_of_growth(growth: Growth) -> tuple[int, int, list[int]] | None:
    """The axis along which an array grows, by how much at a time, and how long it is before some
    of the times; it is taken to grow evenly."""
    if growth.first is None:
        return None
    first, last = growth.first.array.shape, growth.largest.array.shape
    if len(first) != len(last):
        return None
    moved = [axis for axis in range(len(last)) if first[axis] != last[axis]]
    times = max(round(growth.count / max(growth.rounds, 1)), 1)
    if len(moved) != 1 or times < 2:
        return None
    (axis,) = moved
    piece = max(round((last[axis] - first[axis]) / (times - 1)), 1)
    taken = range(times) if times <= _MOST_JOINED else _spread(times)
    return axis, piece, [max(first[axis] - piece, 0) + one * piece for one in taken]


def _spread(times: int) -> list[int]:
    """The numbers of some of so many events: a few in a row, out of the middle of each part."""
    groups = _MOST_JOINED // _IN_A_ROW
    middles = ((2 * group + 1) * (times - 1) / (2 * groups) for group in range(groups))
    return [
        round(middle - (_IN_A_ROW - 1) / 2) + one for middle in middles for one in range(_IN_A_ROW)
    ]


# Copies that a view would do for


def _expanding(claim: ExpandInstead) -> Experiment | None:
    repeat, taker, index = claim.repeated.repeat, claim.repeated.taker, claim.repeated.index
    if taker is None:
        return None
    copies, takes = _replayed_by(repeat), _replayed_by(taker)
    source = repeat.operands[0]
    operands = (source, *taker.operands)
    if copies is None or takes is None or bytes_of(operands) * 2 > MOST_BYTES:
        return None
    made = remade(operands, 2, count_of_sets(bytes_of(operands)))
    shape = repeat.results[0].array.shape
    copying = _runner(copies, repeat, made)

    def take(number: int, repeated: torch.Tensor) -> Any:
        tensors = list(made[number % len(made)][1:])
        tensors[index] = repeated
        args = [_filled(one, tensors) for one in taker.arguments]
        return takes(*args, **{name: _filled(one, tensors) for name, one in taker.keywords})

    def as_is(number: int) -> Any:
        return take(number, copying(number))

    def other(number: int) -> Any:
        return take(number, made[number % len(made)][0].expand(shape))

    return Experiment(as_is, other, lambda: [(as_is(0), other(0))], operands)


# Attention


def _fusing(claim: FuseAttention) -> Experiment | None:
    attention = claim.attention
    before, after, softmax = attention.before, attention.after, attention.softmax
    if before is None or after is None:
        return None
    functions = [_replayed_by(one) for one in (before, after, softmax)]
    operands = (*before.operands[:2], after.operands[1])
    scores = softmax.operands[0].array
    if None in functions or 2 * (bytes_of(operands) + 2 * scores.nbytes) > MOST_BYTES:
        return None
    sets = remade(operands, 2, count_of_sets(bytes_of(operands) + 2 * scores.nbytes))
    leading = scores.shape[:-2] if len(scores.shape) == 4 else (1, before.results[0].array.shape[0])
    fused = [_heads(one, leading) for one in sets]
    scale = attention.scale
    queries, keys, values = fused[0]
    chosen = torch._fused_sdp_choice(queries, keys, values, None, 0.0, is_causal=False, scale=scale)
    if chosen == _MATH:
        return None  # no fused kernel takes these: it would be the same work

    def as_is(number: int) -> torch.Tensor:
        queries, keys, values = sets[number % len(sets)]
        weights = torch.softmax((queries @ keys) * scale, -1)
        return weights @ values

    def other(number: int) -> torch.Tensor:
        queries, keys, values = fused[number % len(fused)]
        return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, scale=scale)

    def results() -> Sequence[tuple[Any, Any]]:
        return [(as_is(0), other(0).flatten(0, 1))]

    return Experiment(as_is, other, results, operands)


def _heads(tensors: Sequence[torch.Tensor], leading: tuple[int, ...]) -> list[torch.Tensor]:
    """Queries, keys and values by batch and head, out of the operands of the two products; those
    that were transposed, or made dense so, for the products, as they were before."""
    queries, keys, values = tensors
    turned = (queries, keys.transpose(1, 2), values)
    every = [one if one.stride(-1) == 1 else one.contiguous() for one in turned]
    return [one.unflatten(0, leading) for one in every]  # type: ignore[no-untyped-call]


# Operations by their records


def _replayed_by(operation: Operation) -> Callable[..., Any] | None:
    if not all(map(can_be_made, operation.operands)):
        return None
    if work_of(operation) in ELEMENTWISE and operation.short.endswith("_"):
        # Run in place again and again, numbers would grow beyond all bounds.
        return function_of(operation.name.replace(operation.short, work_of(operation), 1))
    if operation.short not in REPLAYABLE or not operation.replayable:
        return None
    return function_of(operation.name)


def function_of(name: str) -> Callable[..., Any] | None:
    """The operator of a name as the dispatcher spells it; ``None`` if this torch has none."""
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(torch.ops, namespace, None), packet, None)
    return getattr(found, overload, None) if found is not None else None


def _rows(operation: Operation) -> int:
    """The number of values that an index may have."""
    if operation.short not in LOOKUPS or not operation.operands:
        return 2
    axis = operation.arguments[1] if operation.short == "index_select" else 0
    assert isinstance(axis, int)
    return max(operation.operands[0].array.shape[axis], 1)


def _runner(
    function: Callable[..., Any], operation: Operation, sets: Sequence[Sequence[torch.Tensor]]
) -> Callable[[int], Any]:
    calls = [
        (
            [_filled(one, tensors) for one in operation.arguments],
            {name: _filled(one, tensors) for name, one in operation.keywords},
        )
        for tensors in sets
    ]
    count = len(calls)

    def run(number: int) -> Any:
        args, kwargs = calls[number % count]
        return function(*args, **kwargs)

    return run


def _filled(argument: Argument, tensors: Sequence[torch.Tensor]) -> Any:
    match argument:
        case Hole(index):
            return tensors[index]
        case Opaque(kind, text):
            return _OPAQUE[kind](text)
        case tuple():
            return [_filled(one, tensors) for one in argument]
    return argument


def _of_torch(text: str) -> Any:
    return getattr(torch, text.removeprefix("torch."))


_OPAQUE: Mapping[str, Callable[[str], Any]] = {
    "dtype": _of_torch,
    "layout": _of_torch,
    "memory_format": _of_torch,
    "device": torch.device,
}
