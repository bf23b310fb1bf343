"""What is measured decides how a claim stands, noise does not."""

from __future__ import annotations

from memlint.bench.judging import (
    decided,
    is_slower,
    over,
    standing,
    told,
    unclear,
    unmeasured,
    within,
)
from memlint.bench.results import Row, Standing
from tests.bench.samples import noisy, row


def test_a_claim_of_several_parts() -> None:
    assert standing([True, True]) is Standing.HOLDS
    assert standing([True, False]) is Standing.PARTLY
    assert standing([False, False]) is Standing.DOES_NOT_HOLD
    assert standing([]) is Standing.UNMEASURED


def test_claimed_numbers_are_round() -> None:
    assert within(3.3, 1, 3)
    assert within(80, 70, 70)
    assert not within(4.0, 1, 3)
    assert not within(50, 70, 70)


def test_a_wide_interval_around_one_decides_nothing() -> None:
    slower, same, unclear = row(3.0), row(1.0), noisy()
    assert decided([slower, same, unclear]) == [slower, same]
    assert decided([row(8.0, spread=3.0)])


def bears_out(*rows: Row) -> Standing:
    return over(rows, lambda row: row.ratio > 3, is_slower)


def test_comparisons_bear_out_a_claim_or_not() -> None:
    assert bears_out(row(4.0), row(5.0)) is Standing.HOLDS
    assert bears_out(row(4.0), row(1.0)) is Standing.PARTLY
    assert bears_out(row(2.0), row(1.0)) is Standing.PARTLY
    assert bears_out(row(1.0), row(0.5)) is Standing.DOES_NOT_HOLD


def test_noise_neither_bears_out_nor_refutes() -> None:
    assert bears_out(row(4.0), noisy(2.0)) is Standing.PARTLY
    assert bears_out(row(1.0), noisy(2.0)) is Standing.UNMEASURED
    assert bears_out(noisy(2.0)) is Standing.UNMEASURED
    assert bears_out() is Standing.UNMEASURED
    assert unclear([row(4.0), noisy()]) == "; 1 of 2 are too noisy to tell"
    assert unclear([row(4.0)]) == ""


def test_what_is_told_is_what_was_found() -> None:
    assert told(row(3.0)) == "3.00 times slower"
    assert told(row(0.25)) == "4.00 times faster"
    assert told(row(1.0)) == "not measurably slower or faster"
    assert "too noisy" in told(noisy())


def test_one_reason_for_several_claims() -> None:
    answers = unmeasured("no memory", "one", "two")
    assert [(one.claim, one.standing, one.measured) for one in answers] == [
        ("one", Standing.UNMEASURED, "no memory"),
        ("two", Standing.UNMEASURED, "no memory"),
    ]
