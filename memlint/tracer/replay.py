"""Claims of a traced run measured: what was run, once more, against what is advised."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from memlint.measure import Comparison, TooLong, compare
from memlint.tracer.experiments import Experiment, experiment
from memlint.tracer.records import Operation
from memlint.tracer.sightings import AnyClaim, Claim, ExpandInstead, FuseAttention, JoinOnce

_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.float32: 1e-3, torch.float64: 1e-6}
_LEAST_SHARE, _LARGEST_SHARE = 0.15, 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of replaying a claim; times in seconds per run, of which each stands for
    ``events`` of what the finding counts.

    ``uses`` is how many uses the conversion is shared among, ``same`` whether both ways gave the
    same numbers, up to rounding.
    """

    comparison: Comparison
    uses: float
    same: bool
    events: int = 1

    @property
    def as_is(self) -> float:
        """Seconds for one event as it ran."""
        return self.comparison.as_is / self.events

    @property
    def alternative(self) -> float:
        """The alternative without the conversion."""
        return self.comparison.alternative / self.events

    @property
    def conversion(self) -> float:
        """What preparing the alternative takes, once."""
        return self.comparison.conversion / self.events

    @property
    def saved(self) -> float:
        """Seconds that the alternative saves of one event, the conversion charged."""
        return self.as_is - self.alternative - self.conversion / max(self.uses, 1.0)


def measure(claim: AnyClaim, budget: float, *, limit: float | None = None) -> Measured | None:
    """Replay a claim within about ``budget`` seconds; ``None`` where it cannot be.

    Raises :class:`~memlint.measure.TooLong` where that would take longer than ``limit``."""
    end = None if limit is None else time.perf_counter() + limit
    with torch.random.fork_rng(), torch.no_grad():
        made = experiment(claim)
        if made is None:
            return None
        same = all(agree(one, other) for one, other in made.results())
        comparison = compare(
            made.as_is,
            made.alternative,
            budget=budget,
            limit=None if end is None else end - time.perf_counter(),
            conversion=made.conversion,
            uses=made.uses,
            settle=_settling(made),
        )
    return Measured(comparison, made.uses, same, made.events)


def measure_all(
    claims: Iterable[AnyClaim | None], budget: float
) -> tuple[list[Measured | None], int]:
    """What was measured of each claim within ``budget`` seconds in all, the first ones first, and
    of how many nothing was since the time was spent.  Equal ones are measured once."""
    waiting = [(claim, None if claim is None else _key(claim)) for claim in claims]
    deadline = time.perf_counter() + budget
    known: dict[object, Measured | None] = {}
    long: set[object] = set()
    different = {key for claim, key in waiting if claim is not None}
    found: list[Measured | None] = []
    for claim, key in waiting:
        if claim is not None and key not in known:
            left = deadline - time.perf_counter()
            share = left / len(different - known.keys())
            try:
                if left <= 0:
                    raise TooLong
                known[key] = measure(
                    claim, min(max(share, _LEAST_SHARE), _LARGEST_SHARE), limit=left
                )
            except TooLong:
                known[key] = None
                long.add(key)
        found.append(None if claim is None else known[key])
    return found, sum(claim is not None and key in long for claim, key in waiting)


def _key(claim: AnyClaim) -> object:
    """What is the same for claims that say the same of equal operations, wherever they stand."""
    match claim:
        case Claim():
            parts = tuple((_shape(one.operation), one.dense, one.times, one.vanishes)
                          for one in claim.parts)  # fmt: skip
            own = (claim.dense, claim.uses, claim.form, claim.charged)
            return (_shape(claim.operation), parts, own)
        case JoinOnce(growth):
            return (growth.first, growth.largest, growth.count / max(growth.rounds, 1))
        case ExpandInstead(repeated):
            return (_shape(repeated.repeat), _shape(repeated.taker), repeated.index)
        case FuseAttention(attention):
            three = (attention.before, attention.softmax, attention.after)
            return (tuple(map(_shape, three)), attention.scale)


def _shape(operation: Operation | None) -> object:
    if operation is None:
        return None
    return (operation.name, operation.operands, operation.arguments, operation.keywords)


def _settling(made: Experiment) -> Callable[[], object]:
    if any(one.kind == "cuda" for one in made.operands):
        return torch.cuda.synchronize
    return lambda: None


def agree(one: Any, other: Any) -> bool:
    """Whether two results are the same up to rounding, that of the less precise one."""
    if isinstance(one, (tuple, list)):
        return all(agree(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, torch.Tensor):
        return True
    if one.shape != other.shape:
        return False
    if not one.dtype.is_floating_point:
        return one.dtype == other.dtype and bool((one == other).all())
    tolerance = max(_TOLERANCE.get(x.dtype, 1e-3) for x in (one, other))
    if one.dtype != other.dtype:
        one, other = one.double(), other.double()
    scale = max(1.0, prod(one.shape) ** 0.25)
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
