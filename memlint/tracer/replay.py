"""Operations of a traced run once more, as they were and with dense operands, and timed.

Only what depends on nothing but its operands is replayed.  Operands are made anew from what
the records say of them: shape, strides, dtype, device; their values are random ones that the
operation takes on its usual path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from memlint.layout import Strided
from memlint.measure import Comparison, compare
from memlint.tracer.operands import ELEMENTWISE, LOOKUPS, NORMALISING, REDUCTIONS
from memlint.tracer.records import Argument, Hole, Opaque, Operand, Operation
from memlint.tracer.sightings import Claim, Part

DERIVATIVES = frozenset(
    {"threshold_backward", "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward"}
)
COMPARISONS = frozenset({"eq", "lt", "gt", "le", "ge"})
PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "convolution"})
REPLAYABLE = (
    ELEMENTWISE | DERIVATIVES | COMPARISONS | REDUCTIONS | NORMALISING | LOOKUPS | PRODUCTS
    | {"norm", "cat", "clone"}
)  # fmt: skip

_ROTATED_BYTES = 96 << 20
_MOST_BYTES = 512 << 20
_MOST_SETS = 12
_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.float32: 1e-3, torch.float64: 1e-6}


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of replaying a claim; times in seconds per run.

    ``conversion`` is what making the operands dense takes, ``same`` whether both ways gave the
    same numbers, up to rounding.
    """

    comparison: Comparison
    conversion: float
    uses: float
    same: bool

    @property
    def alternative(self) -> float:
        """The alternative with its share of the conversion."""
        return self.comparison.alternative + self.conversion / max(self.uses, 1.0)

    @property
    def net_ratio(self) -> float:
        """As-is over the alternative with its share of the conversion."""
        return self.comparison.as_is / max(self.alternative, 1e-12)


def measure(claim: Claim, budget: float) -> Measured | None:
    """Replay a claim within about ``budget`` seconds; ``None`` where it cannot be."""
    parts = claim.parts or (Part(claim.operation, claim.dense),)
    functions = [_replayed_by(part.operation) for part in parts]
    nbytes = sum(_bytes_of(part.operation) for part in parts)
    if any(one is None for one in functions) or nbytes * 2 > _MOST_BYTES:
        return None
    with torch.random.fork_rng(), torch.no_grad():
        plays = [
            _Play(function, part, _count_of_sets(nbytes))
            for function, part in zip(functions, parts, strict=True)
            if function is not None
        ]
        settle = _settling([one for part in parts for one in part.operation.operands])
        same = all(play.agrees() for play in plays)

        def as_is(number: int) -> None:
            for play in plays:
                play.as_is(number)

        def other(number: int) -> None:
            for play in plays:
                play.other(number)

        comparison = compare(as_is, other, budget=budget * 0.8, settle=settle)
        copying = _copier(claim, _count_of_sets(_bytes_of(claim.operation)))
        conversion = compare(copying, copying, budget=budget * 0.2, settle=settle).as_is
    return Measured(comparison, conversion, claim.uses, same)


class _Play:
    """One part of a claim, ready to be run."""

    def __init__(self, function: Callable[..., Any], part: Part, sets: int) -> None:
        operation = part.operation
        made = [_made(operation, seed) for seed in range(sets)]
        dense = [
            [t.contiguous() if i in part.dense else t for i, t in enumerate(one)] for one in made
        ]
        self._times, self._vanishes = part.times, part.vanishes
        self._as_is = _runner(function, operation, made)
        self._other = _runner(function, operation, dense)

    def as_is(self, number: int) -> None:
        """Run the operation as it ran."""
        for one in range(self._times):
            self._as_is(number + one)

    def other(self, number: int) -> None:
        """Run it with dense operands."""
        if not self._vanishes:
            for one in range(self._times):
                self._other(number + one)

    def agrees(self) -> bool:
        """Whether both give the same numbers, up to rounding."""
        return _agree(self._as_is(0), self._other(0))


def _replayed_by(operation: Operation) -> Callable[..., Any] | None:
    if operation.short not in REPLAYABLE or not operation.replayable:
        return None
    return _function(operation.name)


def _function(name: str) -> Callable[..., Any] | None:
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(torch.ops, namespace, None), packet, None)
    return getattr(found, overload, None) if found is not None else None


def _bytes_of(operation: Operation) -> int:
    return sum(_span(one.array) * one.array.itemsize for one in operation.operands)


def _span(array: Strided) -> int:
    """The elements between the first and the last one of an array, both included."""
    if 0 in array.shape:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return 1 + sum((size - 1) * abs(step) for size, step in steps)


def _count_of_sets(nbytes: int) -> int:
    """So many that going through them outlasts the caches."""
    once = max(nbytes, 1)
    return max(1, min(_MOST_SETS, _ROTATED_BYTES // once, _MOST_BYTES // (2 * once)))


def _made(operation: Operation, seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    rows = _rows_to_choose(operation)
    return [_tensor(one, rows) for one in operation.operands]


def _rows_to_choose(operation: Operation) -> int:
    """The number of values that an index may have."""
    if operation.short in LOOKUPS and operation.operands:
        return max(operation.operands[0].array.shape[0], 1)
    return 2


def _tensor(operand: Operand, rows: int) -> torch.Tensor:
    array = operand.array
    dtype = getattr(torch, operand.dtype)
    # A flat tensor can be filled also where elements of the view share their memory.
    flat = torch.empty(max(_span(array), 1), dtype=dtype, device=operand.device)
    if dtype.is_floating_point or dtype.is_complex:
        flat.normal_()
    elif dtype is torch.bool:
        flat.random_(0, 2)
    else:
        flat.random_(0, rows)
    return flat.as_strided(array.shape, array.strides)


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


def _copier(claim: Claim, sets: int) -> Callable[[int], object]:
    """Makes dense what the claim charges for."""
    charged = claim.dense[:1] if claim.parts else claim.dense
    made = [_made(claim.operation, seed) for seed in range(sets)]
    copied = [[one[index] for index in charged] for one in made]

    def copy(number: int) -> object:
        return [one.contiguous() for one in copied[number % len(copied)]]

    return copy


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


def _settling(operands: Sequence[Operand]) -> Callable[[], object]:
    if any(one.kind == "cuda" for one in operands):
        return torch.cuda.synchronize
    return lambda: None


def _agree(one: Any, other: Any) -> bool:
    """Whether two results are the same up to rounding."""
    if isinstance(one, (tuple, list)):
        return all(_agree(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, torch.Tensor):
        return True
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.dtype.is_floating_point:
        return bool((one == other).all())
    tolerance = _TOLERANCE.get(one.dtype, 1e-3)
    scale = max(1.0, prod(one.shape) ** 0.25)
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
