"""What a trace says of a finding, in words."""

from __future__ import annotations

from typing import Any

import pytest

from memlint.report.evidence_text import long_text, short_text

MEASURED: dict[str, Any] = {
    "verdict": "refuted",
    "count": 8,
    "steps": 4,
    "bytes": 4_000_000,
    "as_is_ms": 2.0,
    "alternative_ms": 0.1,
    "conversion_ms": 1.9,
    "uses": 1,
    "ratio": 20.0,
    "ratio_low": 19.0,
    "ratio_high": 21.0,
    "net_ratio": 1.0,
    "ms_per_step": 0.0,
    "share_of_step": 0.0,
    "numerics": "same",
}


def test_the_short_number_is_that_of_the_verdict() -> None:
    assert short_text(MEASURED) == "refuted: 1.00 times as long with the conversion"
    free = {**MEASURED, "verdict": "confirmed", "conversion_ms": 0.0, "ms_per_step": 3.8}
    assert short_text(free) == "confirmed: 20.00 times as long, 3.8 ms a step"


def test_bytes_are_told_by_the_step_as_counts_are() -> None:
    assert long_text(MEASURED).startswith("refuted: 2 times a step; 1.0 MB a step; as it is 2 ms")
    assert long_text({**MEASURED, "steps": 0}).startswith("refuted: 8 times; 4.0 MB in all; ")


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.0163, "1.6% of it"), (0.0005, "0.1% of it"), (0.0001, "less than 0.1% of it")],
)
def test_a_small_share_is_not_nothing(share: float, told: str) -> None:
    found = {**MEASURED, "verdict": "confirmed", "ms_per_step": 0.01, "share_of_step": share}
    assert long_text(found).endswith(f"0.01 ms a step to be saved, {told}")
