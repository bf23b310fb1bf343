"""What was measured of a rule, in words."""

from __future__ import annotations

from typing import Any

from memlint.bench.json_report import row_object
from memlint.report.measured_text import difference, measured_text
from tests.bench import sessions


def row(of: Any, **changes: Any) -> dict[str, Any]:
    return {"date": "2026-11-30T20:56:07+00:00", "quick": True, **row_object(of), **changes}


def test_one_row_is_one_sentence() -> None:
    assert measured_text([row(sessions.SLOWER)]) == (
        "on this machine on 2026-11-30: 9.27 times slower (8.21-10.5) at float64, 1024 x 1024"
    )


def test_the_day_is_told_where_it_changes_and_forms_where_they_differ() -> None:
    rows = [
        row(sessions.SLOWER),
        row(sessions.EVEN, as_is_form="one", alternative_form="other"),
        row(sessions.SLOWER, date="2026-12-01T00:00:00+00:00", device="cuda"),
    ]
    assert measured_text(rows).splitlines() == [
        "on this machine on 2026-11-30: 9.27 times slower (8.21-10.5) at float64, 1024 x 1024 "
        "(columns in the outer loop against rows in the outer loop)",
        "no measurable difference (0.97-1.16) at float64, 128 x 128 (one against other)",
        "on this machine on 2026-12-01: 9.27 times slower (8.21-10.5) at float64, 1024 x 1024 "
        "on cuda (columns in the outer loop against rows in the outer loop)",
    ]


def test_an_interval_beside_1_that_shows_nothing_says_why() -> None:
    told = difference(
        row(sessions.EVEN, low=1.15, high=2.93, control_low=0.6, control_high=2.5, what="8 x 16")
    )
    assert told == "no measurable difference (1.15-2.93; two equal forms 0.60-2.50) at 8 x 16"


def test_advice_that_does_not_pay_is_told_so() -> None:
    told = difference(row(sessions.FASTER, what="8 x 16"))
    assert told == (
        "1.96 times faster as it is (1.67-2.50) at 8 x 16, 0.20 times with the conversion of the "
        "alternative"
    )
    assert difference(row(sessions.LESS)).startswith("only 0.50 times as many bytes as it is")
    assert difference(row(sessions.MORE)).startswith("300 times as many bytes (299-302)")
    assert difference(row(sessions.FASTER, ratio=0.0, low=0.0))
