"""What was seen and measured of a finding, as the evidence file has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from memlint.findings import Severity
from memlint.measure import LEAST_CLAIM
from memlint.tracer.records import Operand, Operation, Site
from memlint.tracer.sightings import Sighting

if TYPE_CHECKING:
    from memlint.tracer.replay import Measured

CONFIRMED, REFUTED, INCONCLUSIVE, OBSERVED, NOT_REACHED = (
    "confirmed", "refuted", "inconclusive", "observed", "not_reached",
)  # fmt: skip


def evidence_of(
    sighting: Sighting,
    measured: Measured | None,
    durations: Sequence[float],
    there: Sequence[Operation],
    shown: Callable[[str], str],
) -> Mapping[str, Any]:
    """The evidence of one finding; times in milliseconds, what was not measured is ``None``.

    ``durations`` are those of the steps in seconds, ``there`` the operations at the sighting's
    place; ``shown`` spells a path as findings do."""
    born = _birthplace(sighting)
    found: dict[str, Any] = {
        "verdict": OBSERVED if sighting.settled else INCONCLUSIVE,
        "count": sighting.count,
        "bytes": sighting.nbytes,
        "steps": sighting.steps,
        **dict.fromkeys(_MEASURED),
        "layouts": [layout_of(one) for one in _operands(sighting, there)],
        "born_at": None if born is None else f"{shown(born.path)}:{born.line}",
    }
    if measured is not None:
        found.update(_measured(sighting, measured, durations))
    return found


_MEASURED = ("as_is_ms", "alternative_ms", "conversion_ms", "uses", "ratio", "ratio_low",
             "ratio_high", "net_ratio", "aa_low", "aa_high", "ms_per_step", "share_of_step",
             "numerics")  # fmt: skip


def weight(evidence: Mapping[str, Any]) -> tuple[int, float, float]:
    """What evidence is compared by: its verdict, then milliseconds, then bytes."""
    order = (REFUTED, INCONCLUSIVE, OBSERVED, CONFIRMED)
    verdict = evidence.get("verdict")
    return (
        order.index(verdict) if verdict in order else -1,
        evidence.get("ms_per_step") or 0.0,
        evidence.get("bytes") or 0,
    )


def unseen(verdict: str, note: str) -> Mapping[str, Any]:
    """The evidence of what no rule has reported of the run, and why it is judged so."""
    counted = dict.fromkeys(("count", "bytes", "steps", *_MEASURED, "born_at"))
    return {"verdict": verdict, **counted, "layouts": [], "note": note}


def judged(sighting: Sighting, measured: Measured | None) -> Sighting:
    """A sighting as it is to be reported: where both ways give different numbers, that is what
    counts, not the time."""
    if measured is None or measured.same:
        return sighting
    return replace(
        sighting,
        severity=Severity.ERROR,
        message=f"what is advised here gives other numbers, beyond rounding: {sighting.message}",
        help=f"compare the results of both ways, and report the operator; then {sighting.help}",
    )


def _measured(sighting: Sighting, measured: Measured, durations: Sequence[float]) -> dict[str, Any]:
    compared = measured.comparison
    per_step = sighting.count / max(sighting.steps, 1)
    saved = measured.saved * per_step * 1e3
    step = median(durations) * 1e3 if durations else 0.0
    return {
        "verdict": _verdict(sighting, measured),
        "as_is_ms": measured.as_is * 1e3,
        "alternative_ms": measured.alternative * 1e3,
        "conversion_ms": measured.conversion * 1e3,
        "uses": measured.uses,
        "ratio": compared.ratio,
        "ratio_low": compared.low,
        "ratio_high": compared.high,
        "net_ratio": compared.net_ratio,
        "aa_low": compared.control_low,
        "aa_high": compared.control_high,
        "ms_per_step": saved,
        "share_of_step": saved / step if step else None,
        "numerics": "same" if measured.same else "different",
    }


def _verdict(sighting: Sighting, measured: Measured) -> str:
    """It follows ``net_ratio``; what was measured can also be too uncertain to say either."""
    compared = measured.comparison
    if not measured.same:
        return CONFIRMED
    if not sighting.settled:
        return INCONCLUSIVE
    if compared.pays:
        return CONFIRMED
    return INCONCLUSIVE if compared.net_high >= LEAST_CLAIM else REFUTED


def _operands(sighting: Sighting, there: Sequence[Operation]) -> Sequence[Operand]:
    """What the finding speaks of: the operands of the operation that can be replayed, else of the
    one at its place whose operands in another order than row-major are largest."""
    for claim in sighting.claims[:1]:
        return claim.operands
    return max(there, key=_odd_bytes).operands if there else ()


def _odd_bytes(operation: Operation) -> tuple[int, int]:
    every = [one.array.nbytes for one in operation.operands]
    odd = [one.array.nbytes for one in operation.operands if not one.is_contiguous]
    return max(odd, default=0), max(every, default=0)


def layout_of(operand: Operand) -> Mapping[str, Any]:
    """Shape, strides, dtype and device as plain data."""
    return {
        "shape": list(operand.array.shape),
        "strides": list(operand.array.strides),
        "dtype": operand.dtype,
        "device": operand.device,
    }


def _birthplace(sighting: Sighting) -> Site | None:
    """Where the layout came up that the sighting speaks of."""
    for claim in sighting.claims[:1]:
        return claim.born
    return sighting.related[0][0] if sighting.related else None
