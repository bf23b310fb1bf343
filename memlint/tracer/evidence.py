"""What was seen and measured of a finding, as the evidence file has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from memlint.measure import LEAST_CLAIM
from memlint.tracer.sightings import Sighting

if TYPE_CHECKING:
    from memlint.tracer.replay import Measured

CONFIRMED, REFUTED, INCONCLUSIVE, OBSERVED, NOT_REACHED = (
    "confirmed", "refuted", "inconclusive", "observed", "not_reached",
)  # fmt: skip


def evidence_of(
    sighting: Sighting, measured: Measured | None, durations: Sequence[float]
) -> Mapping[str, Any]:
    """The evidence of one finding; times in milliseconds, what was not measured is ``None``."""
    found: dict[str, Any] = {
        "verdict": OBSERVED if sighting.settled else INCONCLUSIVE,
        "count": sighting.count,
        "bytes": sighting.nbytes,
        "steps": sighting.steps,
        **dict.fromkeys(_MEASURED),
        "layouts": [
            {
                "shape": list(operand.array.shape),
                "strides": list(operand.array.strides),
                "dtype": operand.dtype,
                "device": operand.device,
            }
            for claim in sighting.claims[:1]
            for operand in claim.operation.operands
        ],
        "born_at": _shown(sighting.related[0][0]) if sighting.related else None,
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


def _measured(sighting: Sighting, measured: Measured, durations: Sequence[float]) -> dict[str, Any]:
    compared = measured.comparison
    pays = compared.is_slower and measured.net_ratio >= LEAST_CLAIM
    per_step = sighting.count / max(sighting.steps, 1)
    saved = (compared.as_is - measured.alternative) * per_step * 1e3
    step = median(durations) * 1e3 if durations else 0.0
    return {
        "verdict": CONFIRMED if pays else REFUTED,
        "as_is_ms": compared.as_is * 1e3,
        "alternative_ms": compared.alternative * 1e3,
        "conversion_ms": measured.conversion * 1e3,
        "uses": measured.uses,
        "ratio": compared.ratio,
        "ratio_low": compared.low,
        "ratio_high": compared.high,
        "net_ratio": measured.net_ratio,
        "aa_low": compared.control_low,
        "aa_high": compared.control_high,
        "ms_per_step": saved,
        "share_of_step": saved / step if step else None,
        "numerics": "same" if measured.same else "different",
    }


def _shown(site: Any) -> str:
    return f"{site.path}:{site.line}"
