"""What is measured decides how a claim stands, noise does not."""

from __future__ import annotations

from memlint.bench.judging import decided, standing, told, unmeasured, within
from memlint.bench.results import Standing
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
